// What an answer says: its one big line, the few small ones, its sign and tone, and what a screen reader hears.
import type { Translate } from "../shared/i18n";
import { orderTail } from "../shared/numbers";
import { countdown, type VenueTime } from "../shared/time";
import type { TaskView } from "./host";
import type { Screen } from "./state";

export type Tone = "green" | "amber" | "red" | "grey" | "stripes" | "dark";
export type Sign = "tick" | "bar" | "cross" | "circle" | "clock" | "lock" | "away" | "camera";

export interface AnswerView {
  tone: Tone;
  sign: Sign;
  big: string;
  lines: { key: string; label?: string; value: string; strong?: boolean; whole?: boolean }[];
  say: string;
}

export interface AnswerContext {
  t: Translate;
  venue: VenueTime;
  /** The server's time now, and the clock that the states count by. */
  serverNow: number;
  now: number;
  tasks: readonly TaskView[];
  shownTask: string | null;
}

/** Describes a screen that covers everything; `null` for those that do not. */
export function describe(screen: Screen, context: AnswerContext): AnswerView | null {
  const { t, venue, serverNow } = context;
  const tail = (orderNo: string) => ({
    key: "tail",
    label: t("kiosk.alreadyRedeemed.tail"),
    value: orderTail(orderNo),
  });
  switch (screen.kind) {
    case "admitted": {
      const people = t("common.people", screen.partySize);
      const lines: AnswerView["lines"] = [
        { key: "name", value: screen.visitorName, strong: true },
        tail(screen.orderNo),
      ];
      if (screen.taskNo && screen.taskNo !== context.shownTask) {
        const title = context.tasks.find((task) => task.taskNo === screen.taskNo)?.title ?? screen.taskNo;
        const when = venue.timeOrDate(screen.visitAt, serverNow);
        lines.push({ key: "task", value: `${t("kiosk.otherTask", { title })} · ${when}` });
      }
      const time = venue.timeOrDate(screen.consumedAt, serverNow);
      lines.push({
        key: "time",
        value: screen.momentAgo ? `${t("kiosk.admitted.momentAgo")} · ${time}` : time,
      });
      return {
        tone: "green",
        sign: "tick",
        big: people,
        lines,
        say: t("kiosk.admitted.say", { people, name: screen.visitorName }),
      };
    }
    case "already_redeemed": {
      const time = screen.consumedAt ? venue.timeOrDate(screen.consumedAt, serverNow) : null;
      const big = time === null ? t("kiosk.alreadyRedeemed.big") : t("kiosk.alreadyRedeemed.bigAt", { time });
      const lines: AnswerView["lines"] = [];
      if (screen.consumedBy) {
        lines.push({
          key: "by",
          label: t("kiosk.alreadyRedeemed.by"),
          value: screen.consumedBy,
          strong: true,
        });
      }
      if (screen.device) {
        lines.push({
          key: "device",
          label: t("kiosk.alreadyRedeemed.device"),
          value: screen.device,
          strong: true,
        });
      }
      lines.push(tail(screen.orderNo));
      return { tone: "amber", sign: "bar", big, lines, say: big };
    }
    case "wrong_status": {
      const big = t(`common.status.${screen.status}`);
      const what = t(`kiosk.wrongStatus.${screen.status}`);
      const lines = [{ key: "what", value: what, strong: true }, tail(screen.orderNo)];
      return { tone: "amber", sign: "bar", big, lines, say: `${big}. ${what}` };
    }
    case "not_valid": {
      const big = t("kiosk.notValid.big");
      const lines = [{ key: "what", value: t("kiosk.notValid.text"), strong: true }, tail(screen.orderNo)];
      return { tone: "red", sign: "cross", big, lines, say: big };
    }
    case "not_yours": {
      const big = t("kiosk.notYours.big");
      const lines = [{ key: "what", value: t("kiosk.notYours.text"), strong: true }, tail(screen.orderNo)];
      return { tone: "red", sign: "cross", big, lines, say: big };
    }
    case "foreign": {
      const big = t("kiosk.foreign.big");
      const lines = [{ key: "what", value: t("kiosk.foreign.text"), strong: true }];
      return { tone: "grey", sign: "circle", big, lines, say: big };
    }
    case "too_many": {
      const left = ((screen.until ?? context.now) - context.now) / 1_000;
      const lines = [
        { key: "unit", value: t("kiosk.tooMany.text"), strong: true },
        { key: "next", value: t("kiosk.tooMany.next") },
      ];
      return { tone: "red", sign: "clock", big: countdown(left), lines, say: t("kiosk.tooMany.text") };
    }
    case "frozen": {
      const big = t("kiosk.frozen.big");
      const lines = [{ key: "what", value: t("kiosk.frozen.text"), strong: true }];
      return { tone: "red", sign: "lock", big, lines, say: `${big}. ${t("kiosk.frozen.text")}` };
    }
    case "cannot_check": {
      const big = t("kiosk.cannotCheck.big");
      const away = t(`kiosk.cannotCheck.${screen.away}`);
      const lines: AnswerView["lines"] = [
        { key: "away", value: away, strong: true },
        { key: "next", value: t("kiosk.cannotCheck.next"), whole: true },
      ];
      if (screen.orderTail !== null) {
        lines.push({ key: "tail", label: t("kiosk.cannotCheck.tail"), value: screen.orderTail });
        lines.push({ key: "keep", value: t("kiosk.cannotCheck.keep") });
      }
      return { tone: "stripes", sign: "away", big, lines, say: `${big}. ${away}` };
    }
    case "out_of_order": {
      const { state, name } = screen.health;
      if (state === "opening" || state === "live") return null;
      const big = t(`kiosk.outOfOrder.${state}.big`);
      const what = t(`kiosk.outOfOrder.${state}.text`);
      const lines: AnswerView["lines"] = [{ key: "what", value: what, strong: true }];
      if (name) lines.push({ key: "name", value: name });
      return { tone: "dark", sign: "camera", big, lines, say: `${big}. ${what}` };
    }
    default:
      return null;
  }
}

/**
 * How wide a text is set, in ems: Chinese characters are one, others about half. The answer's size is one of a few
 * steps that this picks.
 */
export function step(text: string): "xl" | "l" | "m" | "s" {
  let ems = 0;
  for (const character of text) ems += character.charCodeAt(0) > 0x2e80 ? 1 : 0.56;
  if (ems <= 3.2) return "xl";
  if (ems <= 5.2) return "l";
  if (ems <= 7.2) return "m";
  return "s";
}
