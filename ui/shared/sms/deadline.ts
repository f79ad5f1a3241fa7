// When a number may be sent a code again: a moment, not seconds, so that it outlives a reload and a sleeping tab.

/** What the page stands on; given by tests, the browser's own elsewhere. */
export interface Surroundings {
  /** Milliseconds of the wall clock: the only one that means the same after a reload and in another tab. */
  now: () => number;
  /** Where deadlines are kept; `null` where the browser forbids it. */
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length"> | null;
  /** Where other tabs are heard. */
  window: Pick<Window, "addEventListener" | "removeEventListener">;
  /** Where the page is heard to come into sight. */
  document: Pick<Document, "addEventListener" | "removeEventListener">;
  navigator: Pick<Navigator, "hardwareConcurrency">;
}

export function browserSurroundings(): Surroundings {
  let storage: Storage | null = null;
  try {
    storage = window.localStorage;
  } catch {
    // Forbidden: the deadline then lives as long as the page.
  }
  return { now: () => Date.now(), storage, window, document, navigator };
}

/**
 * Twenty bits of a text. Every mobile number could be tried against a long digest within seconds, whatever its
 * function; of a short one thousands of numbers share each value, so that none of them can be read back.
 */
export function shortDigest(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) {
    hash = Math.imul(hash ^ byte, 0x01000193);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash, 0x2c1b3c6d);
  return ((hash >>> 12) & 0xfffff).toString(16).padStart(5, "0");
}

const PREFIX = "guidepost.sms.";

/** Seconds: the words about a shorter wait outlive it, for nobody could have read them. */
export const READABLE = 5;

/** The storage's key for a scene, a tenant and a number. */
export function deadlineKey(scene: string, tenant: string | undefined, number: string): string {
  return `${PREFIX}${scene}.${shortDigest(JSON.stringify([tenant ?? "", number]))}`;
}

interface Kept {
  since: number;
  until: number;
}

/** The deadlines of one page. */
export class Deadlines {
  /** What the storage would not take. */
  private readonly here = new Map<string, Kept>();
  /** What this page saw last of each deadline, for when the wall clock is put back behind its beginning. */
  private readonly seen = new Map<string, { until: number; left: number }>();

  constructor(private readonly surroundings: Pick<Surroundings, "now" | "storage">) {}

  /** Milliseconds left; 0 where none runs. */
  left(key: string): number {
    const kept = this.here.get(key) ?? this.stored(key);
    if (!kept) return 0;
    const now = this.surroundings.now();
    let { since, until } = kept;
    if (now < since) {
      // The wall clock was put back: what was left goes on from here, for the other tabs as well.
      const seen = this.seen.get(key);
      const wasLeft = seen?.until === until ? seen.left : until - since;
      since = now;
      until = now + Math.min(wasLeft, kept.until - kept.since);
      this.keep(key, { since, until });
    }
    const left = Math.max(0, until - now);
    this.seen.set(key, { until, left });
    return left;
  }

  start(key: string, seconds: number): void {
    const since = this.surroundings.now();
    this.sweep(since);
    this.keep(key, { since, until: since + seconds * 1_000 });
  }

  private keep(key: string, kept: Kept): void {
    this.here.delete(key);
    try {
      if (!this.surroundings.storage) throw new Error("no storage");
      this.surroundings.storage.setItem(key, JSON.stringify(kept));
    } catch {
      this.here.set(key, kept);
    }
  }

  lift(key: string): void {
    this.here.delete(key);
    try {
      this.surroundings.storage?.removeItem(key);
    } catch {
      // It was not kept there either.
    }
  }

  /** Takes away what ran out, of whichever number: nothing of a stranger's visit stays behind for good. */
  private sweep(now: number): void {
    const { storage } = this.surroundings;
    if (!storage) return;
    try {
      const keys = Array.from({ length: storage.length }, (_, at) => storage.key(at));
      for (const key of keys) {
        if (key?.startsWith(PREFIX) && (this.stored(key)?.until ?? 0) <= now) storage.removeItem(key);
      }
    } catch {
      // Where the storage may not be read, nothing was kept.
    }
  }

  private stored(key: string): Kept | null {
    try {
      const kept = JSON.parse(this.surroundings.storage?.getItem(key) ?? "null") as Partial<Kept> | null;
      const { since, until } = kept ?? {};
      return Number.isFinite(since) && Number.isFinite(until) ? (kept as Kept) : null;
    } catch {
      return null;
    }
  }
}
