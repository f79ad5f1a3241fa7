// What goes wrong with SMS codes, in the words of the person who sees it.
import { Code, NoAnswer, Refused } from "../api/client";
import type { Translate } from "../i18n";
import { CaptchaFailed } from "./captcha";

/** What was tried: a lost answer means something else for a message than for a code. */
export type Tried = "send" | "submit";

export function faultWords(t: Translate, fault: unknown, tried: Tried): string {
  if (fault instanceof CaptchaFailed) return t("common.sms.needCaptcha");
  if (fault instanceof NoAnswer) {
    if (fault.away === "server") return t("common.sms.away");
    if (fault.away === "unsent") return tried === "send" ? t("common.sms.unsent") : t("common.sms.offline");
    return tried === "send" ? t("common.sms.sendUnknown") : t("common.sms.offline");
  }
  if (!(fault instanceof Refused)) return t("common.sms.failed");
  const minutes = Math.max(1, Math.ceil((fault.retryAfter ?? 0) / 60));
  switch (fault.code) {
    case Code.mobileInvalid:
      return t("common.sms.mobileInvalid");
    case Code.smsTooFrequent:
      return t("common.sms.tooFrequent");
    case Code.smsDailyLimit:
      return t("common.sms.dailyLimit");
    case Code.smsCodeWrong: {
      const remaining = (fault.data as { remaining?: unknown } | null)?.remaining;
      if (typeof remaining !== "number") return fault.message;
      return remaining > 0 ? t("common.sms.codeWrong", remaining) : t("common.sms.codeWrongLast");
    }
    case Code.smsCodeExpired:
      return t("common.sms.codeExpired");
    case Code.smsCodeLocked:
      return t("common.sms.codeLocked", { minutes });
    case Code.smsNeedCaptcha:
      return t("common.sms.needCaptcha");
    case Code.smsSendFailed:
      return t("common.sms.sendFailed");
    case Code.smsIpLimit:
      return t("common.sms.ipLimit", { minutes });
    case Code.tooManyRequests:
      return t("common.sms.tooMany", { minutes });
    default:
      return fault.message === "" ? t("common.sms.failed") : fault.message;
  }
}
