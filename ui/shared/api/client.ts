// The visitor's end points, typed by the server's own description; every failure is told apart by its code.
import { sensibleSeconds } from "../time";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type OwnOrder = Schemas["OwnOrder"];
export type OrderStatus = Schemas["OrderStatus"];
export type OrderState = Schemas["OrderState"];
export type VerifyCodeView = Schemas["VerifyCodeView"];
export type Info = Schemas["Info"];

/** The error codes that a page acts on; any other is told in the server's words. */
export const Code = {
  badRequest: 1400,
  unauthenticated: 1401,
  forbidden: 1403,
  tooManyRequests: 1429,
  internal: 1500,
  unavailable: 1503,
  orderNotExists: 2001,
  statusNotAllowed: 2002,
  verifyCodeUnavailable: 2004,
  mobileInvalid: 4001,
  smsTooFrequent: 4002,
  smsDailyLimit: 4003,
  smsCodeWrong: 4004,
  smsCodeExpired: 4005,
  smsCodeLocked: 4006,
  smsNeedCaptcha: 4007,
  smsSendFailed: 4008,
  smsIpLimit: 4009,
  smsSceneInvalid: 4010,
} as const;

/**
 * No answer of the server's: the network is away or too slow, or something between answered in its stead. `unsent`: the
 * request surely never left, which a browser cannot tell and the kiosk's shell can.
 */
export class NoAnswer extends Error {
  constructor(readonly away: "network" | "server" | "unsent") {
    super(`no answer: ${away}`);
  }
}

/** The server's own refusal. */
export class Refused extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data: unknown,
  ) {
    super(message);
  }

  /** Seconds until a try may succeed, where the server named them: a second at least, a day at most. */
  get retryAfter(): number | undefined {
    const data = this.data as Partial<Schemas["RetryAfter"]> | null;
    return typeof data?.retryAfter === "number" ? sensibleSeconds(data.retryAfter) : undefined;
  }
}

interface Envelope {
  code: number;
  msg: string;
  data: unknown;
}

function isEnvelope(body: unknown): body is Envelope {
  return typeof body === "object" && body !== null && typeof (body as Partial<Envelope>).code === "number";
}

export interface ClientOptions {
  /** The language of the server's words. */
  language: () => string;
  /** The tenant, where the page's address names one. */
  tenant?: string | undefined;
  /** Milliseconds after which an answer is no longer waited for; without it 10 s, and 16 s for what changes something. */
  timeout?: number;
}

export class Client {
  constructor(private readonly options: ClientOptions) {}

  signInByLink(token: string): Promise<Schemas["SignedIn"]> {
    return this.call("/api/auth/sign-in-link", { token });
  }

  /** Signs in with an SMS code of the scene `login`; the same `requestId` again takes up an answer that was lost. */
  signInBySms(mobile: string, code: string, requestId: string): Promise<unknown> {
    return this.post("/api/auth/sms-login", { mobile, code, requestId });
  }

  /** Ends the session, even where the page is left before the answer has come. */
  signOut(): Promise<unknown> {
    return this.call("/api/auth/logout", {}, true);
  }

  /** The tenant that requests name, where the page's address names one. */
  get tenant(): string | undefined {
    return this.options.tenant;
  }

  post(path: string, body: object): Promise<unknown> {
    return this.call(path, body);
  }

  info(): Promise<Info> {
    return this.call("/api/info");
  }

  ownOrders(): Promise<OwnOrder[]> {
    return this.call("/app-api/team/booking/booking/list");
  }

  verifyCode(orderNo: string): Promise<VerifyCodeView> {
    return this.call(`/app-api/team/booking/booking/verify-code?orderNo=${encodeURIComponent(orderNo)}`);
  }

  private async call<Data>(path: string, body?: object, keepalive = false): Promise<Data> {
    const { language, tenant } = this.options;
    // The server gives the sending of a message up to 15 s.
    const { timeout = body ? 16_000 : 10_000 } = this.options;
    const headers: Record<string, string> = { "X-Client": "web", "Accept-Language": language() };
    if (tenant) headers["tenant-id"] = tenant;
    if (body) headers["Content-Type"] = "application/json";
    const abort = new AbortController();
    const timer = setTimeout(() => {
      abort.abort();
    }, timeout);
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(path, {
        method: body ? "POST" : "GET",
        headers,
        cache: "no-store",
        credentials: "same-origin",
        keepalive,
        signal: abort.signal,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      answer = await response.json().catch((fault: unknown) => {
        // An answer cut off half-way is the network's fault; a page of a proxy's is not.
        if (fault instanceof SyntaxError) return null;
        throw fault;
      });
    } catch {
      throw new NoAnswer("network");
    } finally {
      clearTimeout(timer);
    }
    if (!isEnvelope(answer)) throw new NoAnswer("server");
    if (answer.code !== 0) throw new Refused(answer.code, answer.msg, answer.data);
    return answer.data as Data;
  }
}
