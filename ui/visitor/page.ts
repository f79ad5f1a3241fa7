// What the visitor's page shows, and when: sign in, choose the order, keep the live code on screen, never a dead one.
import { shallowRef, type ShallowRef } from "vue";
import {
  type Client,
  Code,
  NoAnswer,
  type OrderState,
  type OrderStatus,
  type OwnOrder,
  Refused,
} from "../shared/api/client";

/** What stands in the way; each is tried again by itself. */
export type Trouble = "offline" | "unavailable" | "too_many" | "failed";

export type CodePart =
  | { kind: "refreshing"; since: number }
  | { kind: "shown"; verifyCode: string; endsAt: number; life: number; trouble: Trouble | null }
  | { kind: "waiting"; trouble: Trouble; retryAt: number };

export type Screen =
  | { kind: "working"; on: "sign_in" | "orders" | "sign_out"; since: number }
  | { kind: "waiting"; on: "sign_in" | "orders"; trouble: Trouble; retryAt: number }
  | { kind: "signed_out"; linkDead: boolean }
  | { kind: "not_visitor" }
  | { kind: "no_orders" }
  | { kind: "pick"; orders: OwnOrder[] }
  | { kind: "not_found"; others: boolean }
  | { kind: "code"; order: OwnOrder; code: CodePart }
  | { kind: "done"; order: OwnOrder; status: Exclude<OrderStatus, "paid">; consumedAt: number | null };

export interface PageOptions {
  client: Pick<Client, "signInByLink" | "signOut" | "ownOrders" | "verifyCode">;
  /** Milliseconds of a clock that never jumps; the phone's wall clock is often wrong and is not asked. */
  now: () => number;
  /** The order that the page's address names. */
  wanted: () => string | null;
  /** Puts the order chosen into the page's address. */
  chose: (orderNo: string) => void;
}

/** While a code is shown it is asked for again, so that "redeemed" shows soon after the scan. */
const POLL = 3_000;
/** An order that cannot be used now is looked at now and then: it may have been paid. */
const SLOW_POLL = 15_000;
const BACK_OFF = [1_000, 2_000, 4_000, 8_000, 15_000];
/** How long a sign-out is waited for, before the log-in shows all the same. */
const SIGN_OUT = 3_000;
/** The screen was frozen if its clock stood still for longer than this. */
const FROZEN = 5_000;

export class VisitorPage {
  readonly screen: ShallowRef<Screen>;
  /** The clock's reading that the countdown shows; moves four times a second. */
  readonly now: ShallowRef<number>;
  /** The refresh that a person asked for: under way, or just done. */
  readonly refresh: ShallowRef<"idle" | "busy" | "done"> = shallowRef("idle");

  private orders: OwnOrder[] = [];
  private token: string | null = null;
  /** The token is good once, so it is never on its way twice. */
  private signingIn: Promise<void> | null = null;
  private linkDead = false;
  private failures = 0;
  private visible = true;
  /** The code that ran out last; the server may give it for the blink that the answer's way took. */
  private gone: string | null = null;
  /** Answers to questions older than this one are not listened to. */
  private asked = 0;
  private next: ReturnType<typeof setTimeout> | undefined;
  private atZero: ReturnType<typeof setTimeout> | undefined;
  private readonly clock: ReturnType<typeof setInterval>;

  constructor(private readonly options: PageOptions) {
    this.now = shallowRef(options.now());
    this.screen = shallowRef({ kind: "working", on: "orders", since: this.now.value });
    this.clock = setInterval(() => {
      this.tick();
    }, 250);
  }

  dispose(): void {
    this.stop();
    clearInterval(this.clock);
  }

  /** Begins, with the token of a sign-in link where the address held one. */
  async start(token: string | null): Promise<void> {
    this.stop();
    this.token = token;
    this.linkDead = false;
    this.failures = 0;
    this.show({ kind: "working", on: token === null ? "orders" : "sign_in", since: this.options.now() });
    await this.enter();
  }

  /** Leaves this account for another one. */
  async signOut(): Promise<void> {
    this.stop();
    this.orders = [];
    this.token = null;
    const leaving: Screen = { kind: "working", on: "sign_out", since: this.options.now() };
    this.show(leaving);
    // Where it fails, the next sign-in takes the session's place in this browser, and the old one ends by itself.
    const ended = this.options.client.signOut().catch(() => undefined);
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, SIGN_OUT))]);
    // A sign-in link that was opened meanwhile goes on.
    if (this.screen.value === leaving) this.show({ kind: "signed_out", linkDead: false });
  }

  private get leaving(): boolean {
    const screen = this.screen.value;
    return screen.kind === "working" && screen.on === "sign_out";
  }

  /** Shows the order that the address names now (the back button), or the list. */
  goToWanted(): void {
    if (this.leaving) return;
    const wanted = this.options.wanted();
    const orderNo = wanted?.toUpperCase();
    const order = this.orders.find((o) => o.orderNo === orderNo);
    if (order) this.open(order);
    else if (orderNo) this.show({ kind: "not_found", others: this.orders.length > 0 });
    else this.showOrders();
  }

  choose(order: OwnOrder): void {
    this.options.chose(order.orderNo);
    this.open(order);
  }

  get hasOtherOrders(): boolean {
    return this.orders.length > 1;
  }

  showOrders(): void {
    const [first, second] = this.orders;
    if (!first) this.show({ kind: "no_orders" });
    else if (!second) this.open(first);
    else this.show({ kind: "pick", orders: this.orders });
  }

  /** Asks again now: a person's refresh, or a try before its time. The same code stays the same code. */
  async askNow(): Promise<void> {
    const screen = this.screen.value;
    if (screen.kind === "waiting") {
      await this.enter();
    } else if (screen.kind === "code" || screen.kind === "done") {
      if (this.refresh.value === "busy") return;
      this.refresh.value = "busy";
      const well = await this.ask();
      this.refresh.value = well ? "done" : "idle";
      if (well) {
        setTimeout(() => {
          if (this.refresh.value === "done") this.refresh.value = "idle";
        }, 2_000);
      }
    }
  }

  /** The page goes out of sight: nobody can say for how long, so the code goes as well. */
  hidden(): void {
    this.visible = false;
    this.stop();
    this.hideCode();
  }

  /** The page is in sight again, or the network is back. */
  async returned(): Promise<void> {
    this.visible = true;
    this.tick();
    this.failures = 0;
    this.hideCode();
    const screen = this.screen.value;
    // Whoever leaves is not brought back by a glance at another page.
    if (this.leaving) return;
    if (screen.kind === "code" || screen.kind === "done") await this.ask();
    else if (screen.kind === "waiting" || screen.kind === "working") await this.enter();
  }

  /** The network is back: no need to wait for the next try. */
  async online(): Promise<void> {
    const screen = this.screen.value;
    if (screen.kind === "waiting") await this.enter();
    else if (screen.kind === "code" && (screen.code.kind === "waiting" || this.failures > 0))
      await this.ask();
  }

  private async enter(): Promise<void> {
    this.stop();
    const question = ++this.asked;
    // While a try is repeated its trouble stays on screen: a flicker would tell nothing.
    const working = (on: "sign_in" | "orders") => {
      if (question === this.asked && this.screen.value.kind !== "waiting") {
        this.show({ kind: "working", on, since: this.options.now() });
      }
    };
    try {
      if (this.token !== null) {
        working("sign_in");
        await (this.signingIn ??= this.signIn(this.token));
      }
      working("orders");
      const orders = await this.options.client.ownOrders();
      if (question !== this.asked) return;
      this.orders = orders;
      this.failures = 0;
      if (this.options.wanted() === null) this.showOrders();
      else this.goToWanted();
    } catch (fault) {
      if (question !== this.asked) return;
      if (fault instanceof Refused && fault.code === Code.unauthenticated) {
        this.show({ kind: "signed_out", linkDead: this.linkDead });
      } else if (fault instanceof Refused && fault.code === Code.forbidden) {
        this.show({ kind: "not_visitor" });
      } else {
        const { trouble, wait } = this.troubled(fault);
        const stillOn = this.token === null ? "orders" : "sign_in";
        this.show({ kind: "waiting", on: stillOn, trouble, retryAt: this.options.now() + wait });
        this.later(wait, () => void this.enter());
      }
    }
  }

  private async signIn(token: string): Promise<void> {
    try {
      await this.options.client.signInByLink(token);
    } catch (fault) {
      // A link opened twice on one phone is dead and its session is alive: the orders will tell.
      const dead =
        fault instanceof Refused && fault.code !== Code.unavailable && fault.retryAfter === undefined;
      if (!dead) throw fault;
      this.linkDead = true;
    } finally {
      this.signingIn = null;
    }
    this.token = null;
  }

  private open(order: OwnOrder): void {
    this.stop();
    this.gone = null;
    this.failures = 0;
    if (order.status === "paid") {
      this.show({ kind: "code", order, code: { kind: "refreshing", since: this.options.now() } });
    } else {
      this.show({ kind: "done", order, status: order.status, consumedAt: order.consumedAt ?? null });
    }
    void this.ask();
  }

  /** Asks for the code of the order on screen; `true` where the server answered with one or with the order's end. */
  private async ask(): Promise<boolean> {
    const before = this.screen.value;
    if (!this.visible || (before.kind !== "code" && before.kind !== "done")) return false;
    const { order } = before;
    const question = ++this.asked;
    clearTimeout(this.next);
    // From the moment of asking, so that the network's slowness never lengthens a code's life on screen.
    const sentAt = this.options.now();
    try {
      const view = await this.options.client.verifyCode(order.orderNo);
      if (question !== this.asked) return false;
      this.failures = 0;
      this.answered(order, view.verifyCode, sentAt + (view.expireTime - view.serverTime));
      return true;
    } catch (fault) {
      if (question !== this.asked) return false;
      return this.refused(order, fault);
    }
  }

  private answered(order: OwnOrder, verifyCode: string, endsAt: number): void {
    const now = this.options.now();
    const left = endsAt - now;
    if (left <= 0 || (verifyCode === this.gone && left < 2_000)) {
      this.hideCode();
      if (this.screen.value.kind === "done") {
        this.show({ kind: "code", order, code: { kind: "refreshing", since: now } });
      }
      this.later(Math.max(left, 0) + 250, () => void this.ask());
      return;
    }
    const before = this.screen.value;
    const shown = before.kind === "code" && before.code.kind === "shown" ? before.code : null;
    const same = shown?.verifyCode === verifyCode;
    // Each answer's bound is on the safe side, so the latest of them is the nearest to the truth.
    const end = same ? Math.max(shown.endsAt, endsAt) : endsAt;
    const life = Math.max(end - now, shown?.life ?? 0);
    this.show({ kind: "code", order, code: { kind: "shown", verifyCode, endsAt: end, life, trouble: null } });
    clearTimeout(this.atZero);
    this.atZero = setTimeout(() => {
      this.zero();
    }, end - now);
    this.later(POLL, () => void this.ask());
  }

  private refused(order: OwnOrder, fault: unknown): boolean {
    if (fault instanceof Refused) {
      switch (fault.code) {
        case Code.unauthenticated:
          this.stop();
          this.show({ kind: "signed_out", linkDead: false });
          return false;
        case Code.orderNotExists:
          this.stop();
          this.show({ kind: "not_found", others: this.orders.some((o) => o.orderNo !== order.orderNo) });
          return false;
        case Code.statusNotAllowed: {
          const state = fault.data as OrderState;
          clearTimeout(this.atZero);
          if (state.status === "paid") break;
          this.show({ kind: "done", order, status: state.status, consumedAt: state.consumedAt ?? null });
          this.later(SLOW_POLL, () => void this.ask());
          return true;
        }
      }
    }
    const { trouble, wait } = this.troubled(fault);
    const now = this.options.now();
    const screen = this.screen.value;
    if (screen.kind === "code") {
      const code: CodePart =
        screen.code.kind === "shown"
          ? { ...screen.code, trouble }
          : { kind: "waiting", trouble, retryAt: now + wait };
      this.show({ ...screen, code });
    }
    this.later(wait, () => void this.ask());
    return false;
  }

  private troubled(fault: unknown): { trouble: Trouble; wait: number } {
    const backOff = BACK_OFF[Math.min(this.failures, BACK_OFF.length - 1)] ?? 15_000;
    this.failures += 1;
    if (fault instanceof NoAnswer) {
      return { trouble: fault.away === "network" ? "offline" : "unavailable", wait: backOff };
    }
    if (fault instanceof Refused) {
      if (fault.retryAfter !== undefined)
        return { trouble: "too_many", wait: Math.max(fault.retryAfter * 1_000, 1_000) };
      if (fault.code === Code.verifyCodeUnavailable || fault.code === Code.unavailable) {
        return { trouble: "unavailable", wait: backOff };
      }
    }
    return { trouble: "failed", wait: backOff };
  }

  private zero(): void {
    this.hideCode();
    void this.ask();
  }

  private hideCode(): void {
    clearTimeout(this.atZero);
    const screen = this.screen.value;
    if (screen.kind !== "code" || screen.code.kind !== "shown") return;
    this.gone = screen.code.verifyCode;
    this.show({ ...screen, code: { kind: "refreshing", since: this.options.now() } });
  }

  private tick(): void {
    const now = this.options.now();
    const frozen = now - this.now.value > FROZEN;
    this.now.value = now;
    if (frozen && this.visible) void this.returned();
  }

  private show(screen: Screen): void {
    this.now.value = this.options.now();
    this.screen.value = screen;
  }

  private later(wait: number, what: () => void): void {
    clearTimeout(this.next);
    if (this.visible) this.next = setTimeout(what, wait);
  }

  private stop(): void {
    this.asked += 1;
    clearTimeout(this.next);
    clearTimeout(this.atZero);
  }
}
