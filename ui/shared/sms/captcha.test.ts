// The proof of work against challenges of ALTCHA's own library, checked by its own verification.
import {
  type Challenge,
  createChallenge,
  type DeriveKeyFunction,
  pbkdf2,
  sha,
  type Solution,
  verifySolution,
} from "altcha/lib";
import { describe, expect, it } from "vitest";
import { CaptchaFailed, prove } from "./captcha";

const secret = "a secret of the server's";
const live = () => new AbortController().signal;

function challenge(algorithm: string, deriveKey: DeriveKeyFunction, keyPrefix = "00"): Promise<Challenge> {
  return createChallenge({
    algorithm,
    cost: 3,
    deriveKey,
    keyPrefix,
    hmacSignatureSecret: secret,
    data: { scene: "login" },
  });
}

describe("a challenge", () => {
  it.each([
    ["PBKDF2/SHA-256", pbkdf2.deriveKey],
    ["SHA-256", sha.deriveKey],
  ])("of %s is solved, and the server's library takes the token", async (algorithm, deriveKey) => {
    const token = await prove(await challenge(algorithm, deriveKey), { cores: 2, signal: live() });
    const payload = JSON.parse(atob(token)) as { challenge: Challenge; solution: Solution };
    expect(Object.keys(payload)).toEqual(["challenge", "solution"]);
    const check = await verifySolution({ ...payload, deriveKey, hmacSignatureSecret: secret });
    expect(check).toMatchObject({ verified: true, invalidSignature: false });
    const forged = structuredClone(payload);
    forged.challenge.parameters.data = { scene: "confirm" };
    const refused = await verifySolution({ ...forged, deriveKey, hmacSignatureSecret: secret });
    expect(refused.verified).toBe(false);
  });

  it("that is none, or of an unknown kind, fails and is not looped over", async () => {
    const strange = await challenge("PBKDF2/SHA-256", pbkdf2.deriveKey);
    strange.parameters.algorithm = "ARGON9";
    for (const data of [null, {}, { parameters: {} }, "x", strange]) {
      await expect(prove(data, { cores: 2, signal: live() })).rejects.toBeInstanceOf(CaptchaFailed);
    }
  });

  it("too hard ends with its time, and one that nobody waits for at once", async () => {
    const hard = await challenge("SHA-256", sha.deriveKey, "00000000000000");
    await expect(prove(hard, { cores: 2, signal: live(), timeout: 20 })).rejects.toBeInstanceOf(
      CaptchaFailed,
    );
    await expect(prove(hard, { cores: 2, signal: AbortSignal.abort() })).rejects.toBeInstanceOf(
      CaptchaFailed,
    );
  });
});
