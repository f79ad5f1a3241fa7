// What the code's field makes of keys and pastes.
import { describe, expect, it } from "vitest";
import { takeTyped } from "./typed";

describe("the field", () => {
  it.each([
    ["483921", "plain"],
    ["４８３９２１", "full width"],
    [" 483 921\r\n", "spaces and a line end"],
    ["\ufeff483\u200b921", "unseen characters"],
  ])("takes %j: %s", (shown) => {
    expect(takeTyped("", shown)).toEqual({ value: "483921", fault: null, complete: true });
  });

  it("keeps leading zeros", () => {
    expect(takeTyped("00001", "000012")).toMatchObject({ value: "000012", complete: true });
  });

  it("is not complete with five", () => {
    expect(takeTyped("4839", "48392")).toEqual({ value: "48392", fault: null, complete: false });
  });

  it("lets a seventh key do nothing, at whatever place", () => {
    expect(takeTyped("483921", "4839217")).toEqual({ value: "483921", fault: null, complete: true });
    expect(takeTyped("483921", "7483921")).toMatchObject({ value: "483921" });
  });

  it("cuts a longer paste, says so and holds it back", () => {
    for (const [before, shown] of [
      ["", "4839217"],
      ["", "13800138000"],
      ["483921", "483921483921"],
    ] as const) {
      const { value, fault, complete } = takeTyped(before, shown);
      expect([value.length, fault, complete]).toEqual([6, "too_long", false]);
    }
  });

  it("lets what is no digit stand and says so", () => {
    expect(takeTyped("", "483-92")).toEqual({ value: "483-92", fault: "ill_formed", complete: false });
    expect(takeTyped("", "４８３９２l")).toEqual({ value: "48392l", fault: "ill_formed", complete: false });
  });
});
