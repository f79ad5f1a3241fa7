// What comes over the shell's wire.
import { expect, it } from "vitest";
import { commandError, readFrame } from "./host";

it("a frame is its number in eight bytes, little-endian, then the JPEG", () => {
  const raw = new Uint8Array([7, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xd8, 0xff]);
  expect(readFrame(raw.buffer)).toEqual({ seq: 2 ** 32 + 7, jpeg: new Uint8Array([0xff, 0xd8, 0xff]) });
});

it("nothing is no frame", () => {
  expect(readFrame(new ArrayBuffer(0))).toBeNull();
  expect(readFrame(new ArrayBuffer(8))).toBeNull();
});

it("a rejected command carries its error, anything else is a fault of the app", () => {
  expect(commandError({ kind: "signed_out" })).toEqual({ kind: "signed_out" });
  expect(commandError("command not found")).toEqual({ kind: "internal" });
  expect(commandError(null)).toEqual({ kind: "internal" });
});
