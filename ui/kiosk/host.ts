// The one place that talks to the shell: what the screen may ask, and what it hears.
import { Channel, invoke } from "@tauri-apps/api/core";
import type { Via } from "../shared/sms/useSmsSend";
import type { components } from "./host-types";

type Schemas = components["schemas"];
export type KioskInfo = Schemas["KioskInfo"];
export type KioskEvent = Schemas["KioskEvent"];
export type TaskView = Schemas["TaskView"];
export type TaskOrder = Schemas["TaskOrder"];
export type Settings = Schemas["Settings"];
export type SourceChoice = Schemas["SourceChoice"];
export type CommandError = Schemas["CommandError"];
export type Kept = Schemas["Kept"];
export type SmsSent = Schemas["SmsSent"];
export type CaptchaChallenge = Schemas["CaptchaChallenge"];

export type Camera = Extract<SourceChoice, { kind: "camera" }>;

/** A frame of the live picture. */
export interface Frame {
  seq: number;
  jpeg: Uint8Array<ArrayBuffer>;
}

/** The shell. Its promises are rejected with a {@link CommandError}. */
export interface Host {
  info(): Promise<KioskInfo>;
  /** How things stand (session, link, source), then what happens, in the order in which it happens. */
  subscribe(on: (event: KioskEvent) => void): Promise<void>;
  /** Today's tasks of the guide who is signed in. */
  tasks(): Promise<TaskView[]>;
  taskOrders(taskNo: string): Promise<TaskOrder[]>;
  /** The answer comes as the events `reading` and `outcome`. */
  redeemByHand(orderNo: string, verifyCode: string): Promise<void>;
  cameras(): Promise<Camera[]>;
  chooseSource(choice: SourceChoice): Promise<void>;
  saveSettings(settings: Settings): Promise<void>;
  signIn(link: string): Promise<void>;
  /** Has a code for signing in sent to a number (E.164). */
  sendSms(mobile: string, captchaToken: string | null, via: Via | null): Promise<SmsSent>;
  captcha(mobile: string): Promise<CaptchaChallenge>;
  /** Signs in with a code; the same `requestId` again takes up an answer that was lost. */
  smsLogin(mobile: string, code: string, requestId: string): Promise<void>;
  signOut(): Promise<void>;
  openVisitorPage(orderNo: string): Promise<void>;
  /** The newest frame, if there is a newer one than `after`. */
  nextPreview(after: number): Promise<Frame | null>;
}

/** What a rejected command carries; anything else that is thrown is the app's own fault. */
export function commandError(fault: unknown): CommandError {
  const known = typeof fault === "object" && fault !== null && "kind" in fault;
  return known ? (fault as CommandError) : { kind: "internal" };
}

const SEQ_BYTES = 8;

/** Takes a frame off the wire: its number in eight bytes, little-endian, then the JPEG; empty for none. */
export function readFrame(raw: ArrayBuffer): Frame | null {
  if (raw.byteLength <= SEQ_BYTES) return null;
  const seq = Number(new DataView(raw).getBigUint64(0, true));
  return { seq, jpeg: new Uint8Array(raw, SEQ_BYTES) };
}

const tauriHost: Host = {
  info: () => invoke("info"),
  subscribe: (on) => {
    const channel = new Channel<KioskEvent>();
    channel.onmessage = on;
    return invoke("subscribe", { channel });
  },
  tasks: () => invoke("tasks"),
  taskOrders: (taskNo) => invoke("task_orders", { taskNo }),
  redeemByHand: (orderNo, verifyCode) => invoke("redeem_by_hand", { orderNo, verifyCode }),
  cameras: () => invoke("cameras"),
  chooseSource: (choice) => invoke("choose_source", { choice }),
  saveSettings: (settings) => invoke("save_settings", { settings }),
  signIn: (link) => invoke("sign_in", { link }),
  sendSms: (mobile, captchaToken, via) => invoke("send_sms", { mobile, captchaToken, via }),
  captcha: (mobile) => invoke("captcha", { mobile }),
  smsLogin: (mobile, code, requestId) => invoke("sms_login", { mobile, code, requestId }),
  signOut: () => invoke("sign_out"),
  openVisitorPage: (orderNo) => invoke("open_visitor_page", { orderNo }),
  nextPreview: async (after) => readFrame(await invoke<ArrayBuffer>("next_preview", { after })),
};

/** The shell this page runs in; `null` in a bare browser, where nothing can be redeemed. */
export async function findHost(): Promise<Host | null> {
  if ("__TAURI_INTERNALS__" in window) return tauriHost;
  // A development server plays the shell, for design and browser tests; a built page never pretends.
  if (import.meta.env.DEV) return (await import("./host-browser")).browserHost();
  return null;
}
