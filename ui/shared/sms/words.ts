// What goes wrong with SMS codes, in the words of the person who sees it.
import { Code, NoAnswer, Refused } from "../api/client";
import type { Translate } from "../i18n";
import { CaptchaFailed } from "./captcha";

/** What was tried: a lost answer means something else for a message than for a code. */
export type Tried = "send" | "submit";

/** A length of time as people say it: seconds below a minute, else whole minutes, and hours from the first on. */
export function duration(t: Translate, seconds: number): string {
  if (seconds < 60) return t("common.sms.seconds", { seconds: Math.floor(seconds) });
  const minutes = Math.floor(seconds / 60) % 60;
  const hours = Math.floor(seconds / 3_600);
  if (hours === 0) return t("common.sms.minutes", { minutes });
  return minutes === 0 ? t("common.sms.hours", { hours }) : t("common.sms.hoursMinutes", { hours, minutes });
}

/** Up to a whole minute: who comes back after it is not sent away again. */
export function upToMinutes(seconds: number): number {
  return Math.max(1, Math.ceil(seconds / 60)) * 60;
}

export function faultWords(t: Translate, fault: unknown, tried: Tried): string {
  if (fault instanceof CaptchaFailed) return t("common.sms.needCaptcha");
  if (fault instanceof NoAnswer) {
    if (fault.away === "server") return t("common.sms.away");
    if (fault.away === "unsent") return tried === "send" ? t("common.sms.unsent") : t("common.sms.offline");
    return tried === "send" ? t("common.sms.sendUnknown") : t("common.sms.offline");
  }
  if (!(fault instanceof Refused)) return t("common.sms.failed");
  const time = duration(t, upToMinutes(fault.retryAfter ?? 0));
  switch (fault.code) {
    case Code.mobileInvalid:
      return t("common.sms.mobileInvalid");
    case Code.smsTooFrequent:
      return t("common.sms.tooFrequent");
    case Code.smsDailyLimit:
      return t("common.sms.dailyLimit");
    case Code.smsCodeWrong: {
      const remaining = (fault.data as { remaining?: unknown } | null)?.remaining;
      if (typeof remaining !== "number") return t("common.sms.codeWrongPlain");
      return remaining > 0 ? t("common.sms.codeWrong", remaining) : t("common.sms.codeWrongLast");
    }
    case Code.smsCodeExpired:
      return t("common.sms.codeExpired");
    case Code.smsCodeLocked:
      return t("common.sms.codeLocked", { time });
    case Code.smsNeedCaptcha:
      return t("common.sms.needCaptcha");
    case Code.smsSendFailed:
      return t("common.sms.sendFailed");
    case Code.smsIpLimit:
      return t("common.sms.ipLimit", { time });
    case Code.tooManyRequests:
      return t("common.sms.tooMany", { time });
    case Code.verifyCodeUnavailable:
      return t("common.sms.codesAway");
    case Code.unavailable:
      return t("common.sms.unavailable");
    case Code.internal:
      return t("common.sms.internal");
    case Code.smsSceneInvalid:
      return t("common.sms.sceneInvalid");
    default:
      // The server speaks the language that the page had when it asked.
      return fault.message === "" ? t("common.sms.failed") : fault.message;
  }
}
