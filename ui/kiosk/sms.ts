// The field for SMS codes speaks of paths and of answers; here they become the shell's commands, and its errors answers.
import { Code, NoAnswer, Refused } from "../shared/api/client";
import type { Post, Via } from "../shared/sms/useSmsSend";
import { type CommandError, commandError, type Host } from "./host";

/** The two things that the field asks for. The page knows no network, so these are no addresses. */
export const SEND = "send";
export const CAPTCHA = "captcha";

/** What the field and its words understand. */
export function asFault(error: CommandError): Error {
  switch (error.kind) {
    case "refused":
      return new Refused(error.code ?? 0, error.message, error.data ?? null);
    case "away":
      return new NoAnswer(error.away === "network" ? "network" : "server");
    case "unsent":
      return new NoAnswer("unsent");
    case "bad_field":
      return new Refused(error.field === "mobile" ? Code.mobileInvalid : Code.badRequest, "", {
        field: error.field,
      });
    default:
      return new Error(error.kind);
  }
}

/** Does something in the shell; what goes wrong there is thrown as the server's own client would. */
export async function asked<T>(doing: Promise<T>): Promise<T> {
  try {
    return await doing;
  } catch (thrown) {
    throw asFault(commandError(thrown));
  }
}

export function postTo(host: Pick<Host, "sendSms" | "captcha">): Post {
  return (path, body) => {
    const { mobile, captchaToken, via } = body as { mobile: string; captchaToken?: string; via?: Via };
    return asked<unknown>(
      path === CAPTCHA ? host.captcha(mobile) : host.sendSms(mobile, captchaToken ?? null, via ?? null),
    );
  };
}
