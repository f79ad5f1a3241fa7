// The kiosk's states: what each event makes of each, with time handed in.
import { describe, expect, it } from "vitest";
import {
  ANSWER_LIMIT,
  canTouchAway,
  deadline,
  type Event,
  initial,
  type Kiosk,
  type KioskEvent,
  offersSettings,
  type Outcome,
  type ScreenKind,
  type SourceState,
  STANDS,
  step,
  UNTOUCHED_LIMIT,
} from "./state";

/** A desk with a clock that only the test moves. */
class Desk {
  kiosk: Kiosk = initial("陈晓");
  now = 1_000;

  get kind(): ScreenKind {
    return this.kiosk.screen.kind;
  }
  do(event: Event): this {
    this.kiosk = step(this.kiosk, event, this.now);
    return this;
  }
  hear(event: KioskEvent): this {
    return this.do({ type: "host", event });
  }
  read(entry: "scan" | "manual" = "scan", orderTail = "010001"): this {
    return this.hear({ type: "reading", orderTail, entry });
  }
  outcome(outcome: Outcome): this {
    return this.hear({ type: "outcome", outcome });
  }
  source(state: SourceState): this {
    return this.hear({ type: "source", health: { name: "Cam", state } });
  }
  link(away: "network" | "server" | "code_service" | null): this {
    return this.hear({ type: "link", away });
  }
  /** Time goes by; the state machine is woken at its deadline, as the timer does it. */
  pass(time: number): this {
    const end = this.now + time;
    for (;;) {
      const until = deadline(this.kiosk.screen);
      if (until === null || until > end) break;
      this.now = Math.max(this.now, until);
      this.do({ type: "time" });
    }
    this.now = end;
    return this;
  }
}

const orderNo = "BK202608010001";
const OUTCOMES: { [K in Outcome["kind"]]: Extract<Outcome, { kind: K }> } = {
  admitted: {
    kind: "admitted",
    orderNo,
    visitorName: "王芳",
    partySize: 12,
    visitAt: 0,
    taskNo: "T1",
    consumedAt: 5,
    momentAgo: false,
  },
  already_redeemed: { kind: "already_redeemed", orderNo, consumedAt: 5, consumedBy: "陈晓", device: "东门" },
  wrong_status: { kind: "wrong_status", orderNo, status: "refunding" },
  not_valid: { kind: "not_valid", orderNo },
  not_yours: { kind: "not_yours", orderNo },
  foreign: { kind: "foreign" },
  too_many: { kind: "too_many", retryAfter: 42 },
  frozen: { kind: "frozen" },
  cannot_check: { kind: "cannot_check", orderNo, away: "server" },
  signed_out: { kind: "signed_out" },
};
const KINDS = Object.keys(OUTCOMES) as Outcome["kind"][];

describe("an answer", () => {
  it.each(KINDS)("%s shows as itself", (kind) => {
    expect(new Desk().read().outcome(OUTCOMES[kind]).kind).toBe(kind);
  });

  it.each([
    ["admitted", STANDS.admitted],
    ["already_redeemed", STANDS.refused],
    ["wrong_status", STANDS.refused],
    ["not_valid", STANDS.refused],
    ["not_yours", STANDS.refused],
    ["foreign", STANDS.foreign],
    ["too_many", 42_000],
  ] as const)("%s leaves by itself, then and not before", (kind, stands) => {
    const desk = new Desk().read().outcome(OUTCOMES[kind]);
    expect(desk.pass(stands - 1).kind).toBe(kind);
    expect(desk.pass(1).kind).toBe("ready");
  });

  it("times are those of the screens' page", () => {
    expect(STANDS).toEqual({ admitted: 2_500, refused: 4_000, foreign: 2_000 });
  });

  it.each([
    "already_redeemed",
    "wrong_status",
    "not_valid",
    "not_yours",
    "foreign",
    "too_many",
    "frozen",
  ] as const)("%s leaves at a touch", (kind) => {
    expect(new Desk().read().outcome(OUTCOMES[kind]).do({ type: "touch" }).kind).toBe("ready");
  });

  it("admitted is not touched away by a stray finger", () => {
    const desk = new Desk().read().outcome(OUTCOMES.admitted);
    expect(canTouchAway(desk.kiosk)).toBe(false);
    expect(desk.do({ type: "touch" }).kind).toBe("admitted");
  });

  it.each(KINDS.filter((kind) => kind !== "signed_out"))("%s gives way to the next code at once", (kind) => {
    const desk = new Desk().read().outcome(OUTCOMES[kind]).read("scan", "010002");
    expect(desk.kiosk.screen).toMatchObject({ kind: "reading", orderTail: "010002" });
    expect(desk.outcome(OUTCOMES.admitted).kind).toBe("admitted");
    expect(desk.pass(STANDS.admitted).kind).toBe("ready");
  });

  it("an invalid code, then a valid one: the valid one is admitted", () => {
    const desk = new Desk().outcome(OUTCOMES.foreign).pass(STANDS.foreign);
    expect(desk.read().outcome(OUTCOMES.admitted).kind).toBe("admitted");
  });
});

describe("reading", () => {
  it("waits for its answer, and then says that it cannot check", () => {
    const desk = new Desk().read();
    expect(desk.pass(ANSWER_LIMIT - 1).kind).toBe("reading");
    expect(desk.pass(1).kiosk.screen).toMatchObject({ kind: "cannot_check", orderTail: "010001" });
  });

  it("takes an answer that comes late", () => {
    expect(new Desk().read().pass(ANSWER_LIMIT).outcome(OUTCOMES.admitted).kind).toBe("admitted");
  });

  it("is nothing while nobody is signed in", () => {
    const desk = new Desk().hear({ type: "session", guide: null }).read();
    expect(desk.kind).toBe("signed_out");
  });
});

describe("cannot check", () => {
  it("stands until it is back", () => {
    const desk = new Desk().read().outcome(OUTCOMES.cannot_check).link("server").pass(600_000);
    expect(desk.kind).toBe("cannot_check");
    expect(desk.do({ type: "touch" }).kind).toBe("cannot_check");
    expect(desk.link(null).kind).toBe("ready");
  });

  it("follows what is away", () => {
    const desk = new Desk().link("network").link("code_service");
    expect(desk.kiosk.screen).toMatchObject({ kind: "cannot_check", away: "code_service" });
  });

  it("ends with the answer of the repeated attempt", () => {
    const desk = new Desk().read().outcome(OUTCOMES.cannot_check).link("network").outcome(OUTCOMES.admitted);
    expect(desk.kind).toBe("admitted");
    expect(desk.link(null).pass(STANDS.admitted).kind).toBe("ready");
  });

  it("comes back after an answer while the network is still away", () => {
    const desk = new Desk().link("network").outcome(OUTCOMES.foreign).pass(STANDS.foreign);
    expect(desk.kind).toBe("cannot_check");
  });

  it("may be touched away when nothing is known to be away", () => {
    const desk = new Desk().read().pass(ANSWER_LIMIT);
    expect(desk.do({ type: "touch" }).kind).toBe("ready");
  });
});

describe("the camera", () => {
  it.each([
    "no_camera",
    "lost",
    "busy",
    "no_permission",
    "stalled",
    "broken_frames",
    "unsupported",
    "no_pictures",
  ] as const)("%s is out of order until frames come", (state) => {
    const desk = new Desk().source("live").source(state);
    expect(desk.kiosk.screen).toMatchObject({ kind: "out_of_order", health: { state } });
    expect(desk.source("live").kind).toBe("ready");
  });

  it("being opened again and again does not make the screen flap", () => {
    const desk = new Desk().source("lost").source("opening");
    expect(desk.kiosk.screen).toMatchObject({ kind: "out_of_order", health: { state: "lost" } });
    expect(desk.source("live").kind).toBe("ready");
  });

  it("failing under an answer changes the answer in nothing", () => {
    const desk = new Desk().read().outcome(OUTCOMES.admitted);
    const before = desk.kiosk.screen;
    expect(desk.source("lost").kiosk.screen).toBe(before);
    expect(desk.pass(STANDS.admitted).kind).toBe("out_of_order");
  });

  it("out of order leaves by hand in reach", () => {
    const desk = new Desk().source("lost").do({ type: "by_hand_open" });
    expect(desk.kind).toBe("by_hand");
    expect(desk.source("stalled").kind).toBe("by_hand");
    expect(desk.read("manual").outcome(OUTCOMES.admitted).pass(STANDS.admitted).kind).toBe("out_of_order");
  });
});

describe("by hand", () => {
  const open = () =>
    new Desk()
      .do({ type: "by_hand_open" })
      .do({ type: "by_hand_pick", orderNo })
      .do({ type: "by_hand_code", text: "483921" });
  const entry = (desk: Desk) => (desk.kiosk.screen.kind === "by_hand" ? desk.kiosk.screen : null);

  it("closes after a minute without a touch, which takes the code with it", () => {
    const desk = open()
      .pass(UNTOUCHED_LIMIT - 1)
      .do({ type: "touch" })
      .pass(UNTOUCHED_LIMIT - 1);
    expect(desk.kind).toBe("by_hand");
    expect(desk.pass(1).kind).toBe("ready");
    expect(JSON.stringify(desk.kiosk)).not.toContain("483921");
  });

  it("typing another order forgets the one chosen", () => {
    expect(entry(open().do({ type: "by_hand_search", text: "9" }))?.orderNo).toBeNull();
  });

  it("is done when the order is done with", () => {
    for (const kind of ["admitted", "already_redeemed", "wrong_status"] as const) {
      const desk = open().do({ type: "by_hand_sending" }).read("manual").outcome(OUTCOMES[kind]);
      expect(desk.pass(STANDS.refused).kind, kind).toBe("ready");
      expect(JSON.stringify(desk.kiosk), kind).not.toContain("483921");
    }
  });

  it("is back with its order and without its code after a wrong one", () => {
    const desk = open().do({ type: "by_hand_sending" }).read("manual").outcome(OUTCOMES.not_valid);
    expect(entry(desk.pass(STANDS.refused))).toMatchObject({ orderNo, code: "", sending: false });
  });

  it("is kept under the answer to a code that is scanned meanwhile", () => {
    const desk = open().read("scan").outcome(OUTCOMES.admitted);
    expect(desk.kind).toBe("admitted");
    expect(entry(desk.pass(STANDS.admitted))).toMatchObject({ orderNo, code: "483921" });
  });

  it("says under the field why it is not taken, and stops waiting", () => {
    const desk = open()
      .do({ type: "by_hand_sending" })
      .do({ type: "by_hand_fault", fault: { field: "code", why: "ill_formed" } });
    expect(entry(desk)).toMatchObject({ sending: false, fault: { field: "code", why: "ill_formed" } });
    expect(entry(desk.do({ type: "by_hand_code", text: "4" }))?.fault).toBeNull();
  });

  it("a fault that comes late does not take an answer off the screen", () => {
    const desk = open()
      .do({ type: "by_hand_sending" })
      .read("scan")
      .outcome(OUTCOMES.admitted)
      .do({ type: "by_hand_fault", fault: { field: "form", error: { kind: "in_flight" } } });
    expect(desk.kind).toBe("admitted");
    expect(entry(desk.pass(STANDS.admitted))).toMatchObject({
      sending: false,
      fault: { field: "form", error: { kind: "in_flight" } },
    });
  });

  it("is no longer waiting once the shell has taken the attempt", () => {
    const desk = open().do({ type: "by_hand_sending" }).read("scan").do({ type: "by_hand_settled" });
    expect(entry(desk.outcome(OUTCOMES.foreign).pass(STANDS.foreign))?.sending).toBe(false);
  });

  it("opens only from rest", () => {
    expect(new Desk().read().outcome(OUTCOMES.admitted).do({ type: "by_hand_open" }).kind).toBe("admitted");
    expect(new Desk().link("network").do({ type: "by_hand_open" }).kind).toBe("cannot_check");
    expect(new Desk().hear({ type: "session", guide: null }).do({ type: "by_hand_open" }).kind).toBe(
      "signed_out",
    );
  });
});

describe("the way out", () => {
  it("is offered where nothing can be checked and no touch leads away, so that a guide can sign out", () => {
    const desk = new Desk();
    expect(offersSettings(desk.kiosk)).toBe(false);
    expect(desk.link("network").kind).toBe("cannot_check");
    expect(offersSettings(desk.kiosk)).toBe(true);
    expect(desk.hear({ type: "session", guide: null }).kind).toBe("signed_out");
  });

  it("is not offered where a touch leads to the settings anyway", () => {
    const desk = new Desk().read().outcome(OUTCOMES.cannot_check);
    expect([canTouchAway(desk.kiosk), offersSettings(desk.kiosk)]).toEqual([true, false]);
    expect(offersSettings(new Desk().source("lost").kiosk)).toBe(false);
  });
});

describe("the session", () => {
  it("that has ended says so until somebody signs in", () => {
    const desk = new Desk().hear({ type: "session", guide: null, why: "ended" });
    expect(desk.kiosk.why).toBe("ended");
    expect(desk.hear({ type: "session", guide: null, why: "no_keyring" }).kiosk.why).toBe("no_keyring");
    expect(desk.hear({ type: "session", guide: "李娜" }).kiosk.why).toBeNull();
    expect(desk.hear({ type: "session", guide: null }).kiosk.why).toBeNull();
  });

  it("is kept as long as the shell says, and nothing is said of it once it has ended", () => {
    const desk = new Desk().read().hear({ type: "kept", kept: "memory" });
    expect([desk.kind, desk.kiosk.kept]).toEqual(["reading", "memory"]);
    expect(desk.hear({ type: "session", guide: null }).kiosk.kept).toBeNull();
    desk.hear({ type: "session", guide: "李娜" }).hear({ type: "kept", kept: "until_reboot" });
    expect(desk.read().outcome({ kind: "signed_out" }).kiosk.kept).toBeNull();
  });

  it("that ends takes the screen, the entry and the list with it", () => {
    const desk = new Desk().read().outcome(OUTCOMES.admitted).pass(STANDS.admitted);
    desk.do({ type: "by_hand_open" }).do({ type: "by_hand_code", text: "483921" });
    desk.hear({ type: "session", guide: null });
    expect(desk.kind).toBe("signed_out");
    expect(desk.kiosk.recent).toEqual([]);
    expect(desk.hear({ type: "session", guide: "李娜" }).kind).toBe("ready");
  });

  it("that turns out to have ended says so", () => {
    const desk = new Desk().read().outcome(OUTCOMES.signed_out);
    expect(desk.kiosk.guide).toBeNull();
    expect(desk.source("live").kind).toBe("signed_out");
  });
});

describe("the last admissions", () => {
  it("are five, the newest first, each order once", () => {
    const desk = new Desk();
    for (const n of [1, 2, 3, 4, 5, 6]) desk.outcome({ ...OUTCOMES.admitted, orderNo: `BK${n}` });
    desk.outcome({ ...OUTCOMES.admitted, orderNo: "BK4", momentAgo: true });
    expect(desk.kiosk.recent.map((one) => one.orderNo)).toEqual(["BK4", "BK6", "BK5", "BK3", "BK2"]);
  });
});

it("a step leaves the state before it as it was", () => {
  const before = initial("陈晓");
  const copy = structuredClone(before);
  step(before, { type: "host", event: { type: "outcome", outcome: OUTCOMES.admitted } }, 0);
  expect(before).toEqual(copy);
});
