// What the visitor's page shows, with a played server and fake time.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Code, NoAnswer, type OwnOrder, Refused, type VerifyCodeView } from "../shared/api/client";
import { VisitorPage } from "./page";

const order = (orderNo: string, change: Partial<OwnOrder> = {}): OwnOrder => ({
  orderNo,
  visitorName: "王芳",
  partySize: 4,
  visitAt: 1_785_000_000_000,
  status: "paid",
  ...change,
});

/** A server whose codes live `ttl` from when they are made; its clock is hours away from the phone's. */
function world(orders: OwnOrder[] = [order("BK1")], ttl = 60_000) {
  const skew = 7 * 3_600_000;
  let made: { code: string; until: number } | null = null;
  let number = 483_921;
  let wanted: string | null = null;
  const server = {
    fault: null as Error | null,
    signIn: null as Error | null,
    asked: 0,
    signedOut: 0,
    delay: 0,
    /** How long the phone has slept, its timers with it. */
    slept: 0,
    tokens: [] as string[],
  };
  const wait = async () => {
    if (server.delay > 0) await new Promise((resolve) => setTimeout(resolve, server.delay));
  };
  const client = {
    signInByLink: async (token: string) => {
      server.tokens.push(token);
      await wait();
      if (server.signIn !== null) throw server.signIn;
      return { expiresAt: 0, roles: [], name: "" };
    },
    signOut: async () => {
      server.signedOut += 1;
      await wait();
      if (server.fault !== null) throw server.fault;
      return true;
    },
    ownOrders: async () => {
      await wait();
      if (server.fault !== null) throw server.fault;
      return orders;
    },
    verifyCode: async (orderNo: string): Promise<VerifyCodeView> => {
      server.asked += 1;
      const fault = server.fault;
      const now = performance.now() + server.slept;
      if (!made || made.until <= now) made = { code: String(number++), until: now + ttl };
      const view = { orderNo, verifyCode: made.code, serverTime: now + skew, expireTime: made.until + skew };
      await wait();
      if (fault !== null) throw fault;
      return view;
    },
  };
  const page = new VisitorPage({
    client,
    now: () => performance.now() + server.slept,
    wanted: () => wanted,
    chose: (orderNo) => {
      wanted = orderNo;
    },
  });
  return {
    page,
    server,
    want: (orderNo: string | null) => {
      wanted = orderNo;
    },
    shown: () => {
      const screen = page.screen.value;
      return screen.kind === "code" && screen.code.kind === "shown" ? screen.code.verifyCode : null;
    },
    code: () => {
      const screen = page.screen.value;
      return screen.kind === "code" ? screen.code : null;
    },
  };
}

const pass = (time: number) => vi.advanceTimersByTimeAsync(time);
const refusal = (code: number, data: unknown = null) => new Refused(code, "no", data);
let now: ReturnType<typeof world>;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  now.page.dispose();
  vi.useRealTimers();
});

describe("the live code", () => {
  it("is shown with its life by the server's times, whatever the phone's clock says", async () => {
    now = world();
    vi.setSystemTime(0);
    await now.page.start(null);
    await pass(0);
    expect(now.shown()).toBe("483921");
    const code = now.code();
    expect(code?.kind === "shown" && code.endsAt - performance.now()).toBe(60_000);
  });

  it("vanishes at zero at once, before the next one is there", async () => {
    now = world();
    await now.page.start(null);
    await pass(59_000);
    expect(now.shown()).toBe("483921");
    now.server.delay = 400;
    await pass(999);
    expect(now.shown()).toBe("483921");
    await pass(1);
    expect(now.code()?.kind).toBe("refreshing");
    await pass(400);
    expect(now.shown()).toBe("483922");
  });

  it("is never shown longer for a slow network", async () => {
    now = world();
    now.server.delay = 3_000;
    void now.page.start(null);
    await pass(6_000);
    const code = now.code();
    // Asked 3 s ago: three of its seconds are gone.
    expect(code?.kind === "shown" && code.endsAt - performance.now()).toBe(57_000);
  });

  it("stays the same code when a person refreshes", async () => {
    now = world();
    await now.page.start(null);
    await pass(1_000);
    const asked = now.server.asked;
    const done = now.page.askNow();
    expect(now.page.refresh.value).toBe("busy");
    await done;
    expect(now.server.asked).toBe(asked + 1);
    expect(now.page.refresh.value).toBe("done");
    expect(now.shown()).toBe("483921");
  });

  it("is hidden when the page goes out of sight, and asked for again when it is back", async () => {
    now = world();
    await now.page.start(null);
    await pass(1_000);
    now.page.hidden();
    expect(now.shown()).toBeNull();
    const asked = now.server.asked;
    await pass(120_000);
    expect(now.server.asked, "nobody asks for a page that nobody sees").toBe(asked);
    await now.page.returned();
    expect(now.server.asked).toBe(asked + 1);
    expect(now.shown()).toBe("483922");
  });

  it("is asked for again when the clock stood still", async () => {
    now = world();
    await now.page.start(null);
    await pass(1_000);
    const asked = now.server.asked;
    now.server.delay = 100;
    now.server.slept = 30_000;
    await pass(250);
    expect(now.code()?.kind).toBe("refreshing");
    expect(now.server.asked).toBe(asked + 1);
  });
});

describe("trouble", () => {
  it("offline leaves a live code, and nothing of it after its end", async () => {
    now = world();
    await now.page.start(null);
    await pass(1_000);
    now.server.fault = new NoAnswer("network");
    await pass(10_000);
    expect(now.shown()).toBe("483921");
    expect(now.code()).toMatchObject({ kind: "shown", trouble: "offline" });
    await pass(50_000);
    expect(now.code()).toMatchObject({ kind: "waiting", trouble: "offline" });
    now.server.fault = null;
    await pass(15_000);
    expect(now.shown()).not.toBeNull();
  });

  it("is tried again with longer and longer waits, and at once when the network is back", async () => {
    now = world();
    now.server.fault = new NoAnswer("network");
    void now.page.start(null);
    const waits = [];
    for (let round = 0; round < 6; round++) {
      await pass(0);
      const screen = now.page.screen.value;
      if (screen.kind !== "waiting") throw new Error(screen.kind);
      const wait = screen.retryAt - performance.now();
      waits.push(wait);
      await pass(wait);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    now.server.fault = null;
    await now.page.online();
    await pass(0);
    expect(now.shown()).toBe("483921");
  });

  it.each([
    [2004, "unavailable"],
    [1503, "unavailable"],
    [1500, "failed"],
  ])("%i is %s and tried again", async (code, trouble) => {
    now = world();
    await now.page.start(null);
    await pass(0);
    now.server.fault = refusal(code);
    await pass(61_000);
    expect(now.code()).toMatchObject({ kind: "waiting", trouble });
    now.server.fault = null;
    await pass(15_000);
    expect(now.shown()).not.toBeNull();
  });

  it("a limit is waited for as long as the server says", async () => {
    now = world();
    await now.page.start(null);
    now.server.fault = refusal(Code.tooManyRequests, { retryAfter: 40 });
    await pass(60_000);
    const code = now.code();
    expect(code).toMatchObject({ kind: "waiting", trouble: "too_many" });
    const wait = code?.kind === "waiting" ? code.retryAt - performance.now() : 0;
    expect(wait).toBeGreaterThan(15_000);
    now.server.fault = null;
    await pass(wait);
    expect(now.shown()).not.toBeNull();
  });
});

describe("the order's end", () => {
  it("shows soon after the scan, with its time", async () => {
    now = world();
    await now.page.start(null);
    await pass(1_000);
    now.server.fault = refusal(2002, { status: "consumed", consumedAt: 1_785_000_123_000 });
    await pass(3_000);
    expect(now.page.screen.value).toMatchObject({
      kind: "done",
      status: "consumed",
      consumedAt: 1_785_000_123_000,
    });
  });

  it("is no end for ever: paid again, the code is back", async () => {
    now = world([order("BK1", { status: "refunding" })]);
    const start = now.page.start(null);
    now.server.fault = null;
    await start;
    now.server.fault = refusal(2002, { status: "refunding" });
    await now.page.askNow();
    expect(now.page.screen.value).toMatchObject({ kind: "done", status: "refunding" });
    now.server.fault = null;
    await pass(15_000);
    expect(now.shown()).not.toBeNull();
  });

  it("not there any more, not the caller's: said, with the way to the others", async () => {
    now = world([order("BK1"), order("BK2")]);
    now.want("BK1");
    await now.page.start(null);
    await pass(0);
    now.server.fault = refusal(2001);
    await pass(3_000);
    expect(now.page.screen.value).toEqual({ kind: "not_found", others: true });
  });

  it("a session that has ended asks for the link", async () => {
    now = world();
    await now.page.start(null);
    await pass(0);
    now.server.fault = refusal(1401);
    await pass(3_000);
    expect(now.page.screen.value).toEqual({ kind: "signed_out", linkDead: false });
    expect(now.shown()).toBeNull();
  });
});

describe("the way in", () => {
  it("posts the token once and shows the order", async () => {
    now = world();
    await now.page.start("T");
    await pass(10_000);
    expect(now.server.tokens).toEqual(["T"]);
    expect(now.shown()).toBe("483921");
  });

  it("posts it once even when the page is left and seen again meanwhile", async () => {
    now = world();
    now.server.delay = 2_000;
    void now.page.start("T");
    await pass(500);
    now.page.hidden();
    void now.page.returned();
    await pass(10_000);
    expect(now.server.tokens).toEqual(["T"]);
    expect(now.shown()).toBe("483921");
  });

  it("keeps the token through a network fault", async () => {
    now = world();
    now.server.signIn = new NoAnswer("network");
    await now.page.start("T");
    expect(now.page.screen.value).toMatchObject({ kind: "waiting", on: "sign_in", trouble: "offline" });
    now.server.signIn = null;
    await pass(1_000);
    expect(now.server.tokens).toEqual(["T", "T"]);
    expect(now.shown()).toBe("483921");
  });

  it("with a used link and a living session goes on, without one says that the link is dead", async () => {
    now = world();
    now.server.signIn = refusal(1401);
    await now.page.start("T");
    await pass(0);
    expect(now.shown()).toBe("483921");
    now.page.dispose();

    now = world();
    now.server.signIn = refusal(1401);
    now.server.fault = refusal(1401);
    await now.page.start("T");
    expect(now.page.screen.value).toEqual({ kind: "signed_out", linkDead: true });
  });

  it("lists several orders, opens the one that the address names in any letter case", async () => {
    now = world([order("BK1"), order("BK2")]);
    await now.page.start(null);
    expect(now.page.screen.value.kind).toBe("pick");
    now.want("bk2");
    now.page.goToWanted();
    await pass(0);
    expect(now.page.screen.value).toMatchObject({ kind: "code", order: { orderNo: "BK2" } });
    now.want("BK9");
    now.page.goToWanted();
    expect(now.page.screen.value).toEqual({ kind: "not_found", others: true });
    now.want(null);
    now.page.goToWanted();
    expect(now.page.screen.value.kind).toBe("pick");
  });

  it("says that there are no orders, or that this account has no use for the page", async () => {
    now = world([]);
    await now.page.start(null);
    expect(now.page.screen.value).toEqual({ kind: "no_orders" });
    now.page.dispose();
    now = world();
    now.server.fault = refusal(1403);
    await now.page.start(null);
    expect(now.page.screen.value).toEqual({ kind: "not_visitor" });
  });

  it("shows the log-in for another number once the session has ended, or has not in three seconds", async () => {
    now = world([]);
    await now.page.start(null);
    now.server.delay = 2_000;
    const left = now.page.signOut();
    await vi.advanceTimersByTimeAsync(1_900);
    expect(now.page.screen.value.kind, "who reloads now is still signed in").toBe("working");
    await vi.advanceTimersByTimeAsync(100);
    await left;
    expect(now.page.screen.value).toEqual({ kind: "signed_out", linkDead: false });

    // Neither a glance at another page nor the back button brings back who leaves.
    now.server.delay = 0;
    await now.page.start(null);
    now.server.delay = 2_000;
    const leaving = now.page.signOut();
    now.page.hidden();
    await now.page.returned();
    now.page.goToWanted();
    await vi.advanceTimersByTimeAsync(1_900);
    expect(now.page.screen.value).toMatchObject({ kind: "working", on: "sign_out" });
    await vi.advanceTimersByTimeAsync(100);
    await leaving;
    expect(now.page.screen.value.kind).toBe("signed_out");

    now.server.delay = 60_000;
    void now.page.signOut();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(now.page.screen.value).toEqual({ kind: "signed_out", linkDead: false });
  });

  it("can be left for another number, whatever the server says", async () => {
    now = world([]);
    await now.page.start(null);
    now.server.fault = new NoAnswer("network");
    await now.page.signOut();
    expect(now.server.signedOut).toBe(1);
    expect(now.page.screen.value).toEqual({ kind: "signed_out", linkDead: false });
    now.server.fault = null;
    await now.page.start(null);
    expect(now.page.screen.value).toEqual({ kind: "no_orders" });
  });
});
