// What the QR says, byte for byte; that it is read again is tested with a decoder in the browser tests.
import { describe, expect, it } from "vitest";
import { draw, payload } from "./payload";

describe("the payload", () => {
  it("is the contract's", () => {
    expect(payload("BK202608010001", "483921")).toBe(
      '{"type":"TEAM_BOOKING_VERIFY","orderNo":"BK202608010001","verifyCode":"483921"}',
    );
  });
});

describe("the drawing", () => {
  it("has a quiet zone of four light modules on each side", () => {
    const { size, path } = draw(payload("BK202608010001", "483921"));
    const runs = [...path.matchAll(/M(\d+) (\d+)h(\d+)/g)].map(([, x, y, length]) => ({
      from: Number(x),
      to: Number(x) + Number(length),
      y: Number(y),
    }));
    expect(runs.length).toBeGreaterThan(100);
    expect(Math.min(...runs.map((run) => run.from))).toBe(4);
    expect(Math.max(...runs.map((run) => run.to))).toBe(size - 4);
    expect(Math.min(...runs.map((run) => run.y))).toBe(4);
    expect(Math.max(...runs.map((run) => run.y))).toBe(size - 5);
  });
});
