// The captcha: a proof of work (ALTCHA) that the browser does by itself, in workers served from the page's own place.
import type { Challenge, Solution } from "altcha/lib";

/** The proof could not be given: it took too long, or the challenge is none that this page knows. */
export class CaptchaFailed extends Error {
  constructor() {
    super("the captcha was not solved");
  }
}

export interface ProveOptions {
  /** Processors of the machine. */
  cores: number;
  signal: AbortSignal;
  /** Milliseconds. */
  timeout?: number;
}

/** Solves a challenge of the server's and gives the `captchaToken`. */
export type Prove = (challenge: unknown, options: ProveOptions) => Promise<string>;

const WORKERS: Record<string, () => Promise<{ default: new () => Worker }>> = {
  PBKDF2: () => import("altcha/workers/pbkdf2?worker"),
  SHA: () => import("altcha/workers/sha?worker"),
};

function isChallenge(data: unknown): data is Challenge {
  const parameters = (data as Partial<Challenge> | null)?.parameters;
  return typeof parameters?.algorithm === "string" && typeof parameters.nonce === "string";
}

/** Nothing of this is loaded before a captcha is asked for. */
export const prove: Prove = async (challenge, { cores, signal, timeout = 90_000 }) => {
  if (!isChallenge(challenge)) throw new CaptchaFailed();
  const family = /^(PBKDF2|SHA)\b/.exec(challenge.parameters.algorithm)?.[1] ?? "";
  const load = WORKERS[family];
  if (!load) throw new CaptchaFailed();
  let solution: Solution | null;
  try {
    const { pbkdf2, sha, solveChallenge, solveChallengeWorkers } = await import("altcha/lib");
    const controller = new AbortController();
    signal.addEventListener("abort", () => {
      controller.abort();
    });
    if (signal.aborted) controller.abort();
    if (typeof Worker === "undefined") {
      const { deriveKey } = family === "SHA" ? sha : pbkdf2;
      solution = await solveChallenge({ challenge, controller, deriveKey, timeout });
    } else {
      const { default: SolvingWorker } = await load();
      solution = await solveChallengeWorkers({
        challenge,
        controller,
        timeout,
        // One processor stays with the page; more than four heat a phone for little.
        concurrency: Math.min(4, Math.max(1, cores - 1)),
        createWorker: () => new SolvingWorker(),
      });
    }
  } catch {
    throw new CaptchaFailed();
  }
  if (!solution) throw new CaptchaFailed();
  const { parameters, signature } = challenge;
  return btoa(JSON.stringify({ challenge: { parameters, signature }, solution }));
};
