// The token leaves the address at once, and the order's number stays.
import { beforeEach, describe, expect, it } from "vitest";
import { takeToken } from "./sign-in-link";

describe("the token of a sign-in link", () => {
  beforeEach(() => {
    history.replaceState(null, "", "/");
  });

  it("is taken and gone from the address", () => {
    history.replaceState(null, "", "/?order=BK1#sign-in=abc-_%3D");
    expect(takeToken()).toBe("abc-_=");
    expect(location.href).toMatch(/\/\?order=BK1$/);
    expect(takeToken()).toBeNull();
  });

  it("is not any other fragment", () => {
    history.replaceState(null, "", "/#top");
    expect(takeToken()).toBeNull();
    expect(location.hash).toBe("#top");
  });
});
