// The captcha: a proof of work (ALTCHA) that the browser does by itself, in workers served from the page's own place.

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

/** The number is sought that makes `challenge` the SHA-256 (in hex) of `salt` and itself, one behind the other. */
interface Challenge {
  algorithm: "SHA-256";
  challenge: string;
  salt: string;
  signature: string;
}

function isChallenge(data: unknown): data is Challenge {
  const { algorithm, challenge, salt, signature } = (data ?? {}) as Partial<Challenge>;
  const texts = typeof salt === "string" && typeof signature === "string" && typeof challenge === "string";
  return algorithm === "SHA-256" && texts && /^[0-9a-f]{64}$/.test(challenge);
}

function hex(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Nothing of the solver is loaded before a captcha is asked for. */
export const prove: Prove = async (data, { cores, signal, timeout = 90_000 }) => {
  if (!isChallenge(data)) throw new CaptchaFailed();
  const { algorithm, challenge, salt, signature } = data;
  const controller = new AbortController();
  const stop = () => {
    controller.abort();
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop);
  try {
    const { sha, solveChallenge, solveChallengeWorkers } = await import("altcha/lib");
    const sought = {
      // As the solver puts it: a key that is the whole hash, derived in one round from the salt and a counter's digits.
      challenge: {
        parameters: { algorithm, nonce: hex(salt), salt: "", cost: 1, keyLength: 32, keyPrefix: challenge },
      },
      counterMode: "string" as const,
      controller,
      timeout,
    };
    let solution;
    if (typeof Worker === "undefined") {
      solution = await solveChallenge({ ...sought, deriveKey: sha.deriveKey });
    } else {
      const { default: SolvingWorker } = await import("altcha/workers/sha?worker");
      // One processor stays with the page; more than four heat a phone for little.
      const concurrency = Math.min(4, Math.max(1, cores - 1));
      solution = await solveChallengeWorkers({
        ...sought,
        concurrency,
        createWorker: () => new SolvingWorker(),
      });
    }
    if (!solution) throw new CaptchaFailed();
    return btoa(JSON.stringify({ algorithm, challenge, number: solution.counter, salt, signature }));
  } catch {
    throw new CaptchaFailed();
  } finally {
    signal.removeEventListener("abort", stop);
  }
};
