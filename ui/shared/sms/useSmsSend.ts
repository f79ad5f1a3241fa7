// Sending an SMS code: one request at a time, a captcha where the server asks for one, and the wait until the next.
import { computed, onScopeDispose, type ShallowRef, shallowRef, watch } from "vue";
import { Code, NoAnswer, Refused } from "../api/client";
import { parseMobile } from "../numbers";
import { sensibleSeconds } from "../time";
import { CaptchaFailed, type Prove } from "./captcha";
import { deadlineKey, Deadlines, READABLE, type Surroundings } from "./deadline";

/** Sends a body to the server and gives the answer's data; throws `Refused` and `NoAnswer`. */
export type Post = (path: string, body: object) => Promise<unknown>;

/** How a code comes: written, or spoken by a call. */
export type Via = "sms" | "voice";

export type SendState =
  | { kind: "idle" }
  | { kind: "sending"; since: number }
  | { kind: "proving"; since: number }
  /** `life`: seconds for which the code is good. */
  | { kind: "sent"; life: number; via: Via }
  | { kind: "failed"; fault: unknown };

export interface SmsSendOptions {
  /** The number as typed; `null` means the session's own, which the server alone knows. */
  mobile: () => string | null;
  scene: () => string;
  tenant: () => string | undefined;
  sendPath: () => string;
  captchaPath: () => string;
  post: () => Post;
  prove: Prove;
  surroundings: Surroundings;
}

export interface SmsSend {
  state: Readonly<ShallowRef<SendState>>;
  /** Milliseconds until another code may be asked for. */
  left: Readonly<ShallowRef<number>>;
  /** The clock's reading that a long send and a long captcha count by. */
  now: Readonly<ShallowRef<number>>;
  /** Asks for a code; `false` where nothing was asked. */
  send: (via?: Via) => Promise<boolean>;
  /** Takes a wait over that another answer of the server's named, in seconds. */
  wait: (seconds: number) => void;
}

/** The wait where the server names none. */
const USUAL_WAIT = 60;
const USUAL_LIFE = 300;

function seconds(data: unknown, field: "expireIn" | "retryAfter", usual: number): number {
  const value = (data as Partial<Record<typeof field, unknown>> | null)?.[field];
  return typeof value === "number" ? sensibleSeconds(value) : usual;
}

export function useSmsSend(options: SmsSendOptions): SmsSend {
  const { surroundings } = options;
  const deadlines = new Deadlines(surroundings);
  const state = shallowRef<SendState>({ kind: "idle" });
  const left = shallowRef(0);
  const now = shallowRef(surroundings.now());

  /** The number in one form: spaces typed into it do not make it another. */
  const number = computed(() => {
    const typed = options.mobile();
    if (typed === null) return "own";
    const parsed = parseMobile(typed);
    return parsed.ok ? parsed.value : null;
  });
  const key = computed(() =>
    number.value === null ? null : deadlineKey(options.scene(), options.tenant(), number.value),
  );

  let timer: ReturnType<typeof setInterval> | undefined;
  function tick(): void {
    now.value = surroundings.now();
    const waited = left.value > 0;
    left.value = key.value === null ? 0 : deadlines.left(key.value);
    // What had to be waited for is over, and so is its telling.
    const fault = state.value.kind === "failed" ? state.value.fault : null;
    if (waited && left.value === 0 && fault instanceof Refused && (fault.retryAfter ?? 0) >= READABLE) {
      state.value = { kind: "idle" };
    }
    const counting = left.value > 0 || state.value.kind === "proving" || state.value.kind === "sending";
    if (counting) {
      timer ??= setInterval(tick, 250);
    } else {
      clearInterval(timer);
      timer = undefined;
    }
  }

  /** Answers that belong to an earlier number are kept for it and not shown. */
  let turn = 0;
  let abort = new AbortController();
  function show(next: SendState): void {
    state.value = next;
    tick();
  }

  // In step with the number itself, so that no other number's wait is ever shown for it.
  watch(
    key,
    () => {
      turn += 1;
      abort.abort();
      show({ kind: "idle" });
    },
    { flush: "sync" },
  );
  tick();

  const storage = (event: StorageEvent) => {
    if (event.key === null || event.key === key.value) tick();
  };
  surroundings.window.addEventListener("storage", storage);
  surroundings.document.addEventListener("visibilitychange", tick);
  onScopeDispose(() => {
    turn += 1;
    abort.abort();
    clearInterval(timer);
    surroundings.window.removeEventListener("storage", storage);
    surroundings.document.removeEventListener("visibilitychange", tick);
  });

  async function ask(body: object, signal: AbortSignal): Promise<unknown> {
    const post = options.post();
    const stopIfGone = () => {
      if (signal.aborted) throw new CaptchaFailed();
    };
    try {
      return await post(options.sendPath(), body);
    } catch (fault) {
      if (!(fault instanceof Refused) || fault.code !== Code.smsNeedCaptcha) throw fault;
    }
    stopIfGone();
    show({ kind: "proving", since: surroundings.now() });
    const challenge = await post(options.captchaPath(), body).catch((fault: unknown) => {
      // The captcha comes before the message: whatever became of it, nothing was sent.
      throw fault instanceof NoAnswer && fault.away === "network" ? new NoAnswer("unsent") : fault;
    });
    const cores = surroundings.navigator.hardwareConcurrency;
    const captchaToken = await options.prove(challenge, { cores, signal });
    stopIfGone();
    show({ kind: "sending", since: surroundings.now() });
    // Another demand for a captcha is an error like any other: never a circle.
    return post(options.sendPath(), { ...body, captchaToken });
  }

  async function send(via: Via = "sms"): Promise<boolean> {
    const busy = state.value.kind === "sending" || state.value.kind === "proving";
    tick();
    const sentFor = key.value;
    if (busy || left.value > 0 || sentFor === null) return false;
    const mine = ++turn;
    abort = new AbortController();
    const { signal } = abort;
    const mobile = options.mobile() === null ? {} : { mobile: number.value };
    const spoken = via === "voice" ? { via } : {};
    show({ kind: "sending", since: surroundings.now() });
    let end: SendState;
    try {
      const data = await ask({ ...mobile, scene: options.scene(), ...spoken }, signal);
      deadlines.start(sentFor, seconds(data, "retryAfter", USUAL_WAIT));
      end = { kind: "sent", life: seconds(data, "expireIn", USUAL_LIFE), via };
    } catch (fault) {
      if (fault instanceof Refused) {
        // The server counts the seconds; what it says holds for every tab.
        if (fault.retryAfter !== undefined) deadlines.start(sentFor, fault.retryAfter);
        if (fault.code === Code.smsSendFailed) deadlines.lift(sentFor);
      }
      end = { kind: "failed", fault };
    }
    if (mine === turn) show(end);
    return true;
  }

  return {
    state,
    left,
    now,
    send,
    wait: (retryAfter) => {
      if (key.value !== null) deadlines.start(key.value, retryAfter);
      tick();
    },
  };
}
