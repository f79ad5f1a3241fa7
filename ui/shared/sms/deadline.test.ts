// Deadlines outlive a reload, hold in every tab, and name no number.
import { beforeEach, describe, expect, it } from "vitest";
import { deadlineKey, Deadlines, shortDigest } from "./deadline";

const NUMBER = "+8613800138000";
const key = deadlineKey("login", undefined, NUMBER);
let now = 1_785_000_000_000;
const clock = { now: () => now, storage: localStorage };

beforeEach(() => {
  localStorage.clear();
  now = 1_785_000_000_000;
});

describe("a deadline", () => {
  it("is a moment: another page of the browser counts from where it is", () => {
    new Deadlines(clock).start(key, 60);
    now += 18_000;
    expect(new Deadlines(clock).left(key)).toBe(42_000);
    now += 42_000;
    expect(new Deadlines(clock).left(key)).toBe(0);
  });

  it("is never longer than it began, when the wall clock is put back", () => {
    new Deadlines(clock).start(key, 60);
    now -= 86_400_000;
    expect(new Deadlines(clock).left(key)).toBe(60_000);
  });

  it("that the wall clock was put back behind goes on from what was left, in every tab", () => {
    const one = new Deadlines(clock);
    one.start(key, 60);
    now += 20_000;
    expect(one.left(key)).toBe(40_000);
    now -= 86_400_000;
    const other = new Deadlines(clock);
    expect(one.left(key), "never frozen, never longer").toBe(40_000);
    now += 15_000;
    expect([one.left(key), other.left(key)]).toEqual([25_000, 25_000]);
    now += 25_000;
    expect([one.left(key), other.left(key)]).toEqual([0, 0]);
  });

  it("counts down for a page that opened only after the clock was put back", () => {
    new Deadlines(clock).start(key, 60);
    now -= 3_600_000;
    const late = new Deadlines(clock);
    expect(late.left(key)).toBe(60_000);
    now += 10_000;
    expect(late.left(key)).toBe(50_000);
  });

  it("that ran out is taken away when another begins, whosever it was", () => {
    const deadlines = new Deadlines(clock);
    const other = deadlineKey("login", undefined, "+8613800138001");
    const third = deadlineKey("confirm", undefined, "own");
    deadlines.start(key, 60);
    deadlines.start(other, 120);
    localStorage.setItem("guidepost.sms.login.broken", "{");
    localStorage.setItem("guidepost.locale", "en");
    now += 60_000;
    deadlines.start(third, 60);
    expect(Object.keys(localStorage).sort()).toEqual([third, "guidepost.locale", other].sort());
  });

  it("is its scene's, its tenant's and its number's own", () => {
    const deadlines = new Deadlines(clock);
    deadlines.start(key, 60);
    for (const other of [
      deadlineKey("confirm", undefined, NUMBER),
      deadlineKey("login", "2", NUMBER),
      deadlineKey("login", undefined, "+8613800138001"),
    ]) {
      expect(deadlines.left(other)).toBe(0);
    }
  });

  it("leaves no number in storage, whole or in part", () => {
    new Deadlines(clock).start(key, 60);
    const kept = Object.entries(localStorage);
    expect(kept.length).toBe(1);
    expect(kept[0]?.[0]).toMatch(/^guidepost\.sms\.login\.[0-9a-f]{5}$/);
    const until = String(now + 60_000);
    expect(kept[0]?.[1]).toBe(`{"since":${now},"until":${until}}`);
  });

  it("lives with the page where storage is forbidden or full", () => {
    const full = {
      getItem: () => null,
      setItem: () => {
        throw new DOMException("full", "QuotaExceededError");
      },
      removeItem: () => undefined,
      key: () => null,
      length: 0,
    };
    for (const storage of [null, full]) {
      const deadlines = new Deadlines({ now: () => now, storage });
      deadlines.start(key, 60);
      expect(deadlines.left(key)).toBe(60_000);
      deadlines.lift(key);
      expect(deadlines.left(key)).toBe(0);
    }
  });

  it("is none where something else stands in its place", () => {
    const deadlines = new Deadlines(clock);
    for (const other of ["", "null", "60", "{}", '{"since":"1","until":9e15}', "{"]) {
      localStorage.setItem(key, other);
      expect(deadlines.left(key), other).toBe(0);
    }
  });
});

describe("the digest", () => {
  it("is shared by thousands of numbers, so that none is told by it", () => {
    const seen = new Map<string, number>();
    for (let n = 0; n < 40_000; n++) {
      const digest = shortDigest(`+86138001${String(n).padStart(5, "0")}`);
      seen.set(digest, (seen.get(digest) ?? 0) + 1);
    }
    expect([...seen.keys()].filter((digest) => !/^[0-9a-f]{5}$/.test(digest))).toEqual([]);
    // 40,000 of 2^20 values by chance: some 750 meet, hardly ever more than four at once.
    expect(seen.size).toBeGreaterThan(39_000);
    expect(seen.size).toBeLessThan(39_500);
    expect(Math.max(...seen.values())).toBeLessThanOrEqual(4);
  });
});
