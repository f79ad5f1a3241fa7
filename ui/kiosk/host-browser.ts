// Plays the shell in a development server, so that the same screens run in a browser for design and tests.
import type { CommandError, Host, Kept, KioskEvent, KioskInfo, Settings, TaskOrder, TaskView } from "./host";
import type { WhySignIn } from "./state";

declare global {
  interface Window {
    /** What a test may do in the shell's stead. */
    shell?: Shell;
  }
}

export interface Shell {
  emit: (event: KioskEvent) => void;
  /** Commands in the order in which the screen gave them; of an attempt only its order. */
  calls: string[];
  /** The code that signs in. */
  smsCode: string;
  /** The next command of this name is refused with this error. */
  refuseNext: (command: string, error: CommandError) => void;
  tasks: TaskView[];
  orders: TaskOrder[];
}

const DAY = Date.UTC(2026, 7, 1, 0, 0);
const at = (hour: number, minute: number) => DAY + ((hour - 8) * 60 + minute) * 60_000;
const NAMES = ["王", "李", "张", "刘", "陈", "杨", "赵", "黄", "周", "吴", "徐", "欧阳"];

/** What a test or a designer may ask for in the page's address. */
function wishes(): URLSearchParams {
  return new URLSearchParams(location.search);
}

export function browserHost(): Host {
  const query = wishes();
  const listeners: ((event: KioskEvent) => void)[] = [];
  const refusals = new Map<string, CommandError>();
  const settings: Settings = {
    locale: query.get("locale") === "en" ? "en" : "zh-CN",
    mirrored: true,
    sound: true,
    source: { kind: "camera", index: 0, name: "HD Pro Webcam" },
  };
  let guide: string | null = query.has("signed-out") ? null : "陈晓";
  const shell: Shell = {
    emit: (event) => {
      for (const listener of listeners) listener(event);
    },
    calls: [],
    smsCode: "048392",
    refuseNext: (command, error) => {
      refusals.set(command, error);
    },
    tasks: [
      {
        taskNo: "T20260801A",
        title: "青铜器馆 · 上午场",
        venue: "一号厅",
        startsAt: at(9, 0),
        endsAt: at(11, 0),
        total: 12,
        paid: 4,
        consumed: 8,
      },
      {
        taskNo: "T20260801B",
        title: "书画馆 · 下午场",
        venue: "三号厅",
        startsAt: at(14, 0),
        endsAt: at(16, 0),
        total: 9,
        paid: 9,
        consumed: 0,
      },
    ],
    orders: NAMES.map((name, index) => ({
      orderNo: `BK2026080100${String(index + 1).padStart(2, "0")}`,
      visitorName: `${name}*`,
      partySize: [12, 2, 4, 1, 3, 2, 5, 2, 8, 2, 1, 26][index] ?? 2,
      visitAt: at(9, 30),
      status: index < 8 ? ("consumed" as const) : ("paid" as const),
      consumedAt: index < 8 ? at(9, 10 + index) : null,
    })),
  };
  window.shell = shell;
  const kept = query.get("kept") as Kept | null;

  function call(command: string, what = ""): Promise<void> {
    shell.calls.push(what ? `${command} ${what}` : command);
    const refusal = refusals.get(command);
    if (!refusal) return Promise.resolve();
    refusals.delete(command);
    // The shell rejects with a plain object, as Tauri does.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    return Promise.reject(refusal);
  }

  const info: KioskInfo = {
    version: "0.1.0",
    server: "127.0.0.1:8080",
    demo: !query.has("no-demo"),
    guide,
    why: query.get("why") as WhySignIn | null,
    timezone: "Asia/Shanghai",
    clockOffset: at(9, 41) - Date.now(),
    voice: query.has("voice"),
    settings,
    visitorPages: query.has("no-demo")
      ? []
      : shell.orders.slice(8).map((order) => ({ name: order.visitorName, orderNo: order.orderNo })),
  };

  let frame = 0;
  return {
    info: async () => {
      await call("info");
      return { ...info, guide, settings: { ...settings } };
    },
    subscribe: async (on) => {
      await call("subscribe");
      listeners.push(on);
      on({ type: "session", guide, why: guide === null ? (info.why ?? null) : null });
      if (guide !== null && kept) on({ type: "kept", kept });
      on({ type: "link", away: null });
      on({ type: "source", health: { name: "HD Pro Webcam", state: "live" } });
    },
    tasks: async () => {
      await call("tasks");
      return structuredClone(shell.tasks);
    },
    taskOrders: async (taskNo) => {
      await call("task_orders", taskNo);
      return taskNo === shell.tasks[0]?.taskNo ? structuredClone(shell.orders) : [];
    },
    redeemByHand: async (orderNo, verifyCode) => {
      await call("redeem_by_hand", orderNo);
      shell.emit({ type: "reading", orderTail: orderNo.slice(-6), entry: "manual" });
      const order = shell.orders.find((one) => one.orderNo === orderNo);
      window.setTimeout(() => {
        if (!order) shell.emit({ type: "outcome", outcome: { kind: "not_yours", orderNo } });
        else if (order.status === "consumed") {
          const consumedAt = order.consumedAt ?? null;
          shell.emit({
            type: "outcome",
            outcome: {
              kind: "already_redeemed",
              orderNo,
              consumedAt,
              consumedBy: "陈晓",
              device: "东门一号",
            },
          });
        } else if (verifyCode !== "483921") {
          shell.emit({ type: "outcome", outcome: { kind: "not_valid", orderNo } });
        } else {
          order.status = "consumed";
          order.consumedAt = Date.now() + info.clockOffset;
          const { visitorName, partySize, visitAt, consumedAt } = order;
          shell.emit({
            type: "outcome",
            outcome: {
              kind: "admitted",
              orderNo,
              visitorName,
              partySize,
              visitAt,
              consumedAt,
              taskNo: "T20260801A",
              momentAgo: false,
            },
          });
        }
      }, 150);
    },
    cameras: async () => {
      await call("cameras");
      return [
        { kind: "camera", index: 0, name: "HD Pro Webcam" },
        { kind: "camera", index: 2, name: "Integrated Camera" },
      ];
    },
    chooseSource: async (choice) => {
      await call("choose_source", choice.kind);
      settings.source = choice;
      const name = choice.kind === "camera" ? choice.name : choice.path;
      shell.emit({ type: "source", health: { name, state: "live" } });
    },
    saveSettings: async (next) => {
      await call("save_settings");
      Object.assign(settings, next);
    },
    signIn: async () => {
      await call("sign_in");
      guide = "陈晓";
      shell.emit({ type: "session", guide });
    },
    sendSms: async (_, captchaToken, via) => {
      await call("send_sms", captchaToken === null ? (via ?? "") : "solved");
      return { expireIn: 300, retryAfter: 60 };
    },
    captcha: async () => {
      await call("captcha");
      // The hash of the salt and 7.
      const text = new TextEncoder().encode("salt&7");
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
      const challenge = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return { algorithm: "SHA-256", challenge, maxnumber: 50, salt: "salt&", signature: "played" };
    },
    smsLogin: async (_, code) => {
      await call("sms_login");
      if (code !== shell.smsCode) {
        const wrong: CommandError = { kind: "refused", code: 4004, message: "", data: { remaining: 4 } };
        // eslint-disable-next-line @typescript-eslint/only-throw-error
        throw wrong;
      }
      guide = "陈晓";
      shell.emit({ type: "session", guide });
      if (kept) shell.emit({ type: "kept", kept });
    },
    signOut: async () => {
      await call("sign_out");
      guide = null;
      shell.emit({ type: "session", guide });
    },
    openVisitorPage: (orderNo) => call("open_visitor_page", orderNo),
    nextPreview: async () => {
      frame += 1;
      return { seq: frame, jpeg: await picture(frame) };
    },
  };
}

let canvas: OffscreenCanvas | undefined;

/** A picture that stands for the camera's: a hall, somebody, a phone. Its left and right differ, so a mirror shows. */
async function picture(frame: number): Promise<Uint8Array<ArrayBuffer>> {
  canvas ??= new OffscreenCanvas(640, 480);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("no canvas");
  const wall = pen.createLinearGradient(0, 0, 640, 480);
  wall.addColorStop(0, "#3b4a44");
  wall.addColorStop(1, "#1b2320");
  pen.fillStyle = wall;
  pen.fillRect(0, 0, 640, 480);
  pen.fillStyle = "#5d6b62";
  pen.fillRect(40, 60, 120, 300);
  pen.fillStyle = "#c9a98b";
  pen.beginPath();
  pen.arc(330, 150, 70, 0, 7);
  pen.fill();
  pen.fillStyle = "#34506b";
  pen.fillRect(220, 225, 220, 255);
  const sway = Math.sin(frame / 15) * 6;
  pen.fillStyle = "#0a0a0a";
  pen.fillRect(380 + sway, 250, 120, 200);
  pen.fillStyle = "#f4f4f4";
  pen.fillRect(390 + sway, 280, 100, 100);
  const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.7 });
  return new Uint8Array(await blob.arrayBuffer());
}
