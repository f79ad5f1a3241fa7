// The kiosk's screen as one union of states: a pure step from state and event to the next state, its time handed in.
import type { components } from "./host-types";

type Schemas = components["schemas"];
export type Outcome = Schemas["Outcome"];
export type KioskEvent = Schemas["KioskEvent"];
export type SourceHealth = Schemas["SourceHealth"];
export type SourceState = Schemas["SourceState"];
export type Away = Schemas["Away"];
export type Entry = Schemas["Entry"];
export type CommandError = Schemas["CommandError"];
export type Kept = Schemas["Kept"];
export type WhySignIn = Schemas["WhySignIn"];

/** How long an answer stands if nobody touches the screen and no code comes, in milliseconds. */
export const STANDS = { admitted: 2_500, refused: 4_000, foreign: 2_000 };
/** An answer that takes longer than this is "cannot check"; it may still come. */
export const ANSWER_LIMIT = 5_000;
/** By hand is left when nobody has touched it for so long. */
export const UNTOUCHED_LIMIT = 60_000;

/** Why a field of the by-hand entry is not taken. */
export type FieldFault = "empty" | "ill_formed";

/** What the guide has entered so far. The code lives here alone, and only until the answer. */
export interface ByHand {
  kind: "by_hand";
  /** The search, or the order's number being typed. */
  search: string;
  /** The order chosen. */
  orderNo: string | null;
  /** The digits as they were typed. */
  code: string;
  /** An attempt is on its way. */
  sending: boolean;
  fault:
    | { field: "order" | "code"; why: FieldFault | "pick_first" }
    | { field: "form"; error: Exclude<CommandError, { kind: "bad_field" }> }
    | null;
  until: number;
}

type Kind = Outcome["kind"];
type Answers = { [K in Exclude<Kind, "cannot_check" | "signed_out">]: Extract<Outcome, { kind: K }> };
/** An answer that covers the screen, with the entry to go back to and when it leaves by itself (`null`: only by a touch). */
export type Answer = {
  [K in keyof Answers]: Answers[K] & { back: ByHand | null; until: number | null };
}[keyof Answers];

export type Screen =
  | { kind: "signed_out" }
  | { kind: "ready" }
  | { kind: "out_of_order"; health: SourceHealth }
  | { kind: "reading"; orderTail: string; entry: Entry; back: ByHand | null; until: number }
  | { kind: "cannot_check"; away: Away; orderTail: string | null; back: ByHand | null }
  | Answer
  | ByHand;

export type ScreenKind = Screen["kind"];

/** One that was let in, for the list of the last five. */
export interface Admission {
  orderNo: string;
  visitorName: string;
  partySize: number;
  consumedAt: number;
}

/** The screen, and the facts that the quiet parts of it show. */
export interface Kiosk {
  screen: Screen;
  guide: string | null;
  /** Why somebody has to sign in again who did not sign out. */
  why: WhySignIn | null;
  /** How long the session is kept; `null` while that is not known, or where nothing is to be said of it. */
  kept: Kept | null;
  away: Away | null;
  /** The source as it is; `null` until it has first been heard of. */
  source: SourceHealth | null;
  /** The last fault of the source, which stands until frames come again. */
  sourceFault: SourceHealth | null;
  recent: Admission[];
}

export type Event =
  | { type: "host"; event: KioskEvent }
  | { type: "time" }
  | { type: "touch" }
  | { type: "by_hand_open" }
  | { type: "by_hand_close" }
  | { type: "by_hand_search"; text: string }
  | { type: "by_hand_pick"; orderNo: string | null }
  | { type: "by_hand_code"; text: string }
  | { type: "by_hand_fault"; fault: NonNullable<ByHand["fault"]> }
  | { type: "by_hand_sending" }
  /** The shell has taken the attempt or refused it; what comes of it comes as an event. */
  | { type: "by_hand_settled" };

const WORKING: readonly SourceState[] = ["opening", "live"];

export function initial(guide: string | null): Kiosk {
  return {
    screen: guide === null ? { kind: "signed_out" } : { kind: "ready" },
    guide,
    why: null,
    kept: null,
    away: null,
    source: null,
    sourceFault: null,
    recent: [],
  };
}

/** The screen when there is no answer to show and nothing being entered. */
function rest(kiosk: Kiosk): Screen {
  if (kiosk.guide === null) return { kind: "signed_out" };
  if (kiosk.away !== null) return { kind: "cannot_check", away: kiosk.away, orderTail: null, back: null };
  if (kiosk.sourceFault) return { kind: "out_of_order", health: kiosk.sourceFault };
  return { kind: "ready" };
}

function isAtRest(screen: Screen): boolean {
  return screen.kind === "ready" || screen.kind === "out_of_order" || screen.kind === "signed_out";
}

/** The by-hand entry under a screen, to go back to. */
function under(screen: Screen): ByHand | null {
  if (screen.kind === "by_hand") return screen;
  return "back" in screen ? screen.back : null;
}

/** The same screen over another entry. */
function withEntry(screen: Screen, entry: ByHand): Screen {
  if (screen.kind === "by_hand") return entry;
  return "back" in screen ? { ...screen, back: entry } : screen;
}

/** Leaves an answer: to the entry it came from, else to rest. */
function leave(kiosk: Kiosk, back: ByHand | null, now: number): Screen {
  if (kiosk.guide === null) return { kind: "signed_out" };
  return back ? { ...back, until: now + UNTOUCHED_LIMIT } : rest(kiosk);
}

/** When the screen changes by itself; `null` for never. */
export function deadline(screen: Screen): number | null {
  return "until" in screen ? screen.until : null;
}

/** Nothing can be checked, and no touch leads away from it: the settings stay in reach, to sign out by. */
export function offersSettings(kiosk: Kiosk): boolean {
  return kiosk.screen.kind === "cannot_check" && !canTouchAway(kiosk);
}

/** What a touch may leave: answers that stand, and a "cannot check" that nothing known holds. */
export function canTouchAway(kiosk: Kiosk): boolean {
  switch (kiosk.screen.kind) {
    case "already_redeemed":
    case "wrong_status":
    case "not_valid":
    case "not_yours":
    case "foreign":
    case "too_many":
    case "frozen":
      return true;
    case "cannot_check":
      return kiosk.away === null;
    default:
      return false;
  }
}

export function step(kiosk: Kiosk, event: Event, now: number): Kiosk {
  const { screen } = kiosk;
  switch (event.type) {
    case "host":
      return onHost(kiosk, event.event, now);
    case "time": {
      const until = deadline(screen);
      return until !== null && now >= until ? { ...kiosk, screen: outOfTime(kiosk, now) } : kiosk;
    }
    case "touch":
      if (screen.kind === "by_hand") return byHand(kiosk, screen, {}, now);
      return canTouchAway(kiosk) ? { ...kiosk, screen: leave(kiosk, under(screen), now) } : kiosk;
    case "by_hand_open": {
      const mayOpen = isAtRest(screen) && kiosk.guide !== null;
      return mayOpen ? { ...kiosk, screen: emptyByHand(now) } : kiosk;
    }
    case "by_hand_close":
      return screen.kind === "by_hand" ? { ...kiosk, screen: rest(kiosk) } : kiosk;
    case "by_hand_search":
      if (screen.kind !== "by_hand") return kiosk;
      return byHand(kiosk, screen, { search: event.text, orderNo: null, fault: null }, now);
    case "by_hand_pick":
      if (screen.kind !== "by_hand") return kiosk;
      return byHand(kiosk, screen, { orderNo: event.orderNo, fault: null }, now);
    case "by_hand_code":
      if (screen.kind !== "by_hand" || screen.sending) return kiosk;
      return byHand(kiosk, screen, { code: event.text, fault: null }, now);
    case "by_hand_fault": {
      const entry = under(screen);
      if (!entry) return kiosk;
      // Only the entry's own wait ends; an answer that has come meanwhile stays, the fault waits under it.
      const mine = screen.kind === "by_hand" || (screen.kind === "reading" && screen.entry === "manual");
      const faulty = { ...entry, sending: false, fault: event.fault };
      return mine ? byHand(kiosk, faulty, {}, now) : { ...kiosk, screen: withEntry(screen, faulty) };
    }
    case "by_hand_settled": {
      const entry = under(screen);
      return entry ? { ...kiosk, screen: withEntry(screen, { ...entry, sending: false }) } : kiosk;
    }
    case "by_hand_sending":
      return screen.kind === "by_hand" ? byHand(kiosk, screen, { sending: true, fault: null }, now) : kiosk;
  }
}

function emptyByHand(now: number): ByHand {
  return {
    kind: "by_hand",
    search: "",
    orderNo: null,
    code: "",
    sending: false,
    fault: null,
    until: now + UNTOUCHED_LIMIT,
  };
}

function byHand(kiosk: Kiosk, entry: ByHand, change: Partial<ByHand>, now: number): Kiosk {
  return { ...kiosk, screen: { ...entry, ...change, until: now + UNTOUCHED_LIMIT } };
}

function outOfTime(kiosk: Kiosk, now: number): Screen {
  const { screen } = kiosk;
  if (screen.kind === "reading") {
    // No answer is not "yes" and not "no". The shell goes on asking; its answer is shown whenever it comes.
    return {
      kind: "cannot_check",
      away: kiosk.away ?? "server",
      orderTail: screen.orderTail,
      back: screen.entry === "manual" ? null : screen.back,
    };
  }
  if (screen.kind === "by_hand") return rest(kiosk);
  return leave(kiosk, under(screen), now);
}

function onHost(kiosk: Kiosk, event: KioskEvent, now: number): Kiosk {
  const { screen } = kiosk;
  switch (event.type) {
    case "reading":
      // The next code wins at once, whatever stands on the screen.
      if (kiosk.guide === null) return kiosk;
      return {
        ...kiosk,
        screen: {
          kind: "reading",
          orderTail: event.orderTail,
          entry: event.entry,
          back: under(screen),
          until: now + ANSWER_LIMIT,
        },
      };
    case "outcome":
      return onOutcome(kiosk, event.outcome, now);
    case "source": {
      const working = WORKING.includes(event.health.state);
      // A camera that is opened again and again must not make the screen flap: its fault stands until frames come.
      const sourceFault = !working ? event.health : event.health.state === "live" ? null : kiosk.sourceFault;
      const next = { ...kiosk, source: event.health, sourceFault };
      return isAtRest(screen) ? { ...next, screen: rest(next) } : next;
    }
    case "link": {
      const next = { ...kiosk, away: event.away ?? null };
      if (isAtRest(screen)) return { ...next, screen: rest(next) };
      if (screen.kind !== "cannot_check") return next;
      return next.away === null
        ? { ...next, screen: leave(next, screen.back, now) }
        : { ...next, screen: { ...screen, away: next.away } };
    }
    case "session": {
      const guide = event.guide ?? null;
      const why = event.why ?? null;
      if (guide === kiosk.guide) return why === kiosk.why ? kiosk : { ...kiosk, why };
      // What one guide entered or saw is none of the next one's business.
      const next = { ...kiosk, guide, why, kept: guide === null ? null : kiosk.kept, recent: [] };
      return { ...next, screen: rest(next) };
    }
    case "kept":
      return { ...kiosk, kept: event.kept ?? null };
  }
}

function onOutcome(kiosk: Kiosk, outcome: Outcome, now: number): Kiosk {
  const { screen } = kiosk;
  const entry = under(screen);
  const manual =
    (screen.kind === "reading" && screen.entry === "manual") || (screen.kind === "by_hand" && screen.sending);
  // A typed order that is done with leaves the entry; a mistyped code or number goes back to it, the code wiped.
  const retry = entry && { ...entry, code: "", sending: false, fault: null };
  const done = manual ? null : entry;
  switch (outcome.kind) {
    case "signed_out": {
      const next = { ...kiosk, guide: null, kept: null, recent: [] };
      return { ...next, screen: rest(next) };
    }
    case "cannot_check":
      return {
        ...kiosk,
        screen: {
          kind: "cannot_check",
          away: outcome.away,
          orderTail: outcome.orderNo.slice(-6),
          back: done,
        },
      };
    case "admitted":
      return {
        ...kiosk,
        screen: { ...outcome, back: done, until: now + STANDS.admitted },
        recent: remember(kiosk.recent, outcome),
      };
    case "already_redeemed":
    case "wrong_status":
      return { ...kiosk, screen: { ...outcome, back: done, until: now + STANDS.refused } };
    case "not_valid":
    case "not_yours":
      return { ...kiosk, screen: { ...outcome, back: manual ? retry : entry, until: now + STANDS.refused } };
    case "foreign":
      return { ...kiosk, screen: { ...outcome, back: entry, until: now + STANDS.foreign } };
    case "too_many":
      return {
        ...kiosk,
        screen: {
          ...outcome,
          back: manual ? retry : entry,
          until: now + Math.max(1, outcome.retryAfter) * 1_000,
        },
      };
    case "frozen":
      return { ...kiosk, screen: { ...outcome, back: null, until: null } };
  }
}

function remember(recent: Admission[], admitted: Extract<Outcome, { kind: "admitted" }>): Admission[] {
  const { orderNo, visitorName, partySize, consumedAt } = admitted;
  const others = recent.filter((one) => one.orderNo !== orderNo);
  return [{ orderNo, visitorName, partySize, consumedAt }, ...others].slice(0, 5);
}
