// The proof of work against challenges made by hand, as the server makes them.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CaptchaFailed, prove } from "./captcha";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const live = () => new AbortController().signal;
const SALT = "0f1e2d3c4b5a69788796a5b4?expires=1785000600&for=ab01&";

function challenge(number: number) {
  return {
    algorithm: "SHA-256",
    challenge: sha256(`${SALT}${number}`),
    maxnumber: 100_000,
    salt: SALT,
    signature: "5a".repeat(32),
  };
}

describe("a challenge", () => {
  it.each([0, 7, 1_234])("with the number %i is solved", async (number) => {
    const asked = challenge(number);
    const token = await prove(asked, { cores: 2, signal: live() });
    const { maxnumber, ...rest } = asked;
    expect(JSON.parse(atob(token))).toEqual({ ...rest, number });
    expect(number).toBeLessThan(maxnumber);
    expect(token.length).toBeLessThan(2_048);
  });

  it("that is none, or of an unknown kind, fails and is not looped over", async () => {
    const good = challenge(1);
    const strange = [
      { ...good, algorithm: "SHA-1" },
      { ...good, challenge: "" },
      { ...good, salt: 1 },
    ];
    for (const data of [null, "x", {}, { algorithm: "SHA-256" }, ...strange]) {
      await expect(prove(data, { cores: 2, signal: live() })).rejects.toBeInstanceOf(CaptchaFailed);
    }
  });

  it("without an answer ends with its time, and one that nobody waits for at once", async () => {
    const endless = { ...challenge(1), challenge: "0".repeat(64) };
    const short = prove(endless, { cores: 2, signal: live(), timeout: 20 });
    await expect(short).rejects.toBeInstanceOf(CaptchaFailed);
    const left = new AbortController();
    const solving = prove(endless, { cores: 2, signal: left.signal });
    left.abort();
    await expect(solving).rejects.toBeInstanceOf(CaptchaFailed);
    await expect(prove(endless, { cores: 2, signal: left.signal })).rejects.toBeInstanceOf(CaptchaFailed);
  });
});
