// The code's field at work: a played server behind fetch, fake time, a real document.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type App, createApp, defineComponent, h, nextTick, reactive, ref } from "vue";
import { Client } from "../api/client";
import { type Locale, makeWords } from "../i18n";
import { common as en } from "../i18n/en";
import { common as zh } from "../i18n/zh-CN";
import { CaptchaFailed, type Prove } from "./captcha";
import type { Surroundings } from "./deadline";
import SmsCodeField from "./SmsCodeField.vue";

const NUMBER = "13800138000";
const SENT = { code: 0, msg: "", data: { expireIn: 300, retryAfter: 60 } };
const refusal = (code: number, data: unknown = null, msg = "in the server's words") => ({ code, msg, data });

type Answer = object | Error | Promise<object>;

/** Every page of one browser: one storage, one server. */
function browser() {
  const asked: { path: string; body: Record<string, unknown>; headers: Record<string, string> }[] = [];
  const answers = new Map<string, Answer[]>();
  const fetched = vi.fn<typeof fetch>(async (path, init) => {
    const at = path as string;
    asked.push({
      path: at,
      body: JSON.parse(init?.body as string) as Record<string, unknown>,
      headers: init?.headers as Record<string, string>,
    });
    const answer = await (answers.get(at)?.shift() ?? SENT);
    if (answer instanceof Error) throw answer;
    return new Response(JSON.stringify(answer));
  });
  vi.stubGlobal("fetch", fetched);
  return {
    asked,
    /** What the server answers next, each once; a send is well without. */
    answers: (path: string, ...next: Answer[]) => {
      answers.set(path, [...(answers.get(path) ?? []), ...next]);
    },
    sends: () => asked.filter((one) => one.path === "/api/sms/send").map((one) => one.body),
  };
}

/** Where this page is heard and told of what happens outside. */
function surroundings(window = new EventTarget(), document = new EventTarget()) {
  return {
    now: () => Date.now(),
    storage: localStorage,
    window: window as unknown as Surroundings["window"],
    document: document as unknown as Surroundings["document"],
    navigator: { hardwareConcurrency: 8 },
  };
}

const open: App[] = [];

function page(
  options: { mobile?: string | null; locale?: Locale; tenant?: string; voice?: boolean; prove?: Prove } = {},
) {
  const locale = options.locale ?? "zh-CN";
  const words = makeWords(locale, { "zh-CN": { common: zh }, en: { common: en } });
  const client = new Client({ language: () => locale, tenant: options.tenant });
  const window = new EventTarget();
  const document_ = new EventTarget();
  const code = ref("");
  const typed = reactive<{ mobile: string | null; scene: string }>({
    mobile: options.mobile === undefined ? NUMBER : options.mobile,
    scene: "login",
  });
  const submitted: string[] = [];
  const refused: string[] = [];
  const onSubmit = vi.fn<(code: string) => Promise<void>>((one) => {
    submitted.push(one);
    return Promise.resolve();
  });
  const field = ref<{ submit: () => void; goOn: () => void } | null>(null);
  const app = createApp(
    defineComponent(() => () => {
      return h(SmsCodeField, {
        ref: field,
        modelValue: code.value,
        "onUpdate:modelValue": (next: string) => {
          code.value = next;
        },
        mobile: typed.mobile,
        scene: typed.scene,
        sendPath: "/api/sms/send",
        captchaPath: "/api/captcha",
        post: (path: string, body: object) => client.post(path, body),
        tenant: options.tenant,
        voice: options.voice ?? false,
        autoSubmit: true,
        onSubmit,
        onMobileRefused: (why: string) => {
          refused.push(why);
        },
        prove: options.prove,
        surroundings: surroundings(window, document_),
      });
    }),
  );
  const root = document.createElement("div");
  document.body.append(root);
  app.use(words.plugin).mount(root);
  open.push(app);
  const find = (id: string) => {
    const found = root.querySelector<HTMLElement>(`[data-testid=${id}]`);
    if (!found) throw new Error(`there is no ${id}`);
    return found;
  };
  const input = find("sms-code") as HTMLInputElement;
  const settle = () => vi.advanceTimersByTimeAsync(0);
  return {
    code,
    typed,
    submitted,
    refused,
    onSubmit,
    /** A code that is submitted goes to the played server's `/login`. */
    logsIn: () => {
      onSubmit.mockImplementation(async (one) => {
        await client.post("/login", { code: one });
      });
    },
    input,
    settle,
    locale: words.locale,
    goOn: () => field.value?.goOn(),
    label: () => find("sms-send").textContent.trim(),
    button: find("sms-send") as HTMLButtonElement,
    fault: () => find("sms-fault").textContent,
    message: () => find("sms-message").textContent,
    said: () => find("sms-said").textContent,
    state: () => find("sms").dataset.state,
    voice: () => root.querySelector<HTMLElement>("[data-testid=sms-voice]"),
    press: async () => {
      find("sms-send").click();
      await settle();
    },
    /** The field's text after a key, a paste or an autofill. */
    type: async (text: string, composing = false) => {
      input.value = text;
      input.dispatchEvent(new InputEvent("input", { isComposing: composing }));
      await settle();
    },
    submit: async () => {
      field.value?.submit();
      await settle();
    },
    /** Another tab of this browser changed the storage. */
    otherTab: async (key: string | null) => {
      const event = new Event("storage");
      Object.assign(event, { key });
      window.dispatchEvent(event);
      await settle();
    },
    inSight: async () => {
      document_.dispatchEvent(new Event("visibilitychange"));
      await settle();
    },
    close: () => {
      app.unmount();
      root.remove();
    },
  };
}

const pass = (time: number) => vi.advanceTimersByTimeAsync(time);

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
});
afterEach(() => {
  for (const app of open.splice(0)) app.unmount();
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("a spoken code", () => {
  it("is offered to whom no message has come, once the wait is over, and keeps the focus", async () => {
    const server = browser();
    const at = page({ voice: true });
    expect(at.voice(), "nobody has asked for a message yet").toBeNull();
    await at.press();
    expect(at.voice()?.getAttribute("aria-disabled")).toBe("true");
    at.voice()?.click();
    await at.settle();
    expect(server.sends(), "it shares the wait").toHaveLength(1);
    await pass(60_000);
    expect(at.voice()?.textContent).toContain("改用语音播报");
    at.voice()?.click();
    await at.settle();
    expect(server.sends()[1]).toEqual({ mobile: "+8613800138000", scene: "login", via: "voice" });
    expect(at.message()).toBe("即将来电播报验证码，5 分钟内有效，以最新的验证码为准");
    expect(at.said()).toBe(at.message());
    expect(at.label()).toBe("60 秒后重发");
  });

  it("passes the captcha by the same way", async () => {
    const server = browser();
    const at = page({ voice: true, prove: () => Promise.resolve("proof") });
    await at.press();
    await pass(60_000);
    server.answers("/api/sms/send", refusal(4007));
    at.voice()?.click();
    await pass(0);
    expect(server.sends().slice(1)).toEqual([
      { mobile: "+8613800138000", scene: "login", via: "voice" },
      { mobile: "+8613800138000", scene: "login", via: "voice", captchaToken: "proof" },
    ]);
  });

  it("is not offered where nobody speaks", async () => {
    browser();
    const at = page();
    await at.press();
    await pass(60_000);
    expect(at.voice()).toBeNull();
  });
});

describe("sending", () => {
  it("asks once for the number and the scene, and counts the server's seconds", async () => {
    const server = browser();
    server.answers("/api/sms/send", { code: 0, msg: "", data: { expireIn: 180, retryAfter: 42 } });
    const at = page({ mobile: "１３８ 0013 8000", tenant: "2" });
    expect(at.label()).toBe("获取验证码");
    await at.press();
    expect(server.sends()).toEqual([{ mobile: "+8613800138000", scene: "login" }]);
    expect(server.asked[0]?.headers).toMatchObject({ "X-Client": "web", "tenant-id": "2" });
    expect(at.label()).toBe("42 秒后重发");
    expect(at.message()).toBe("已发送，3 分钟内有效，以最新一条短信为准");
    expect(document.activeElement).toBe(at.input);
    await pass(41_000);
    expect(at.label()).toBe("1 秒后重发");
    await at.press();
    expect(server.sends().length).toBe(1);
    await pass(1_000);
    expect(at.label()).toBe("重新获取");
    expect(at.said()).toBe("可以重新获取验证码了");
    await at.press();
    expect(server.sends().length).toBe(2);
  });

  it("has a lock on the request itself: two clicks in one turn are one request", async () => {
    const server = browser();
    let answer: (value: object) => void = () => undefined;
    server.answers("/api/sms/send", new Promise<object>((resolve) => (answer = resolve)));
    const at = page();
    at.button.click();
    at.button.click();
    await at.press();
    expect(at.label()).toBe("正在发送");
    expect(at.button.getAttribute("aria-disabled")).toBe("true");
    expect(server.sends().length).toBe(1);
    answer(SENT);
    await at.settle();
    expect(at.state()).toBe("sent");
    expect(server.sends().length).toBe(1);
  });

  it("that takes long says how long, and reads no seconds out", async () => {
    const server = browser();
    let answer: (value: object) => void = () => undefined;
    server.answers("/api/sms/send", new Promise<object>((resolve) => (answer = resolve)));
    const at = page();
    await at.press();
    await pass(10_000);
    expect(at.message()).toBe("");
    await pass(1_500);
    expect(at.message()).toBe("正在发送，已等待 11 秒");
    expect(at.said()).toBe("正在发送");
    await pass(3_000);
    answer(SENT);
    await at.settle();
    expect(at.message()).toContain("已发送");
  });

  it("asks for nothing where the number is none, and tells the page", async () => {
    const server = browser();
    const at = page({ mobile: "1380013" });
    await at.press();
    at.typed.mobile = "";
    await at.settle();
    await at.press();
    expect(at.refused).toEqual(["ill_formed", "empty"]);
    expect(server.asked).toEqual([]);
  });

  it.each([
    [300, "5 分钟"],
    [119, "1 分钟"],
    [45, "45 秒"],
    [5_400, "1 小时 30 分钟"],
  ])("a code that lives for %i s is not said to live longer", async (expireIn, time) => {
    const server = browser();
    server.answers("/api/sms/send", { code: 0, msg: "", data: { expireIn, retryAfter: 60 } });
    const at = page();
    await at.press();
    expect(at.message()).toBe(`已发送，${time}内有效，以最新一条短信为准`);
  });

  it.each([
    [0, "1 秒后重发", 1_000],
    [-5, "1 秒后重发", 1_000],
    [99_999, "24 小时后重发", 86_400_000],
    [3_900, "1 小时 5 分钟后重发", 3_900_000],
  ])("a wait of %i s is held to what makes sense, and the refusal is told", async (retryAfter, label, ms) => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4002, { retryAfter }));
    const at = page();
    await at.press();
    expect(at.label()).toBe(label);
    expect(at.message()).toBe("发送过于频繁，请稍后再试");
    vi.setSystemTime(Date.now() + ms - 1);
    await at.inSight();
    expect(at.button.getAttribute("aria-disabled")).toBe("true");
    vi.setSystemTime(Date.now() + 1);
    await at.inSight();
    expect(at.label()).toBe("重新获取");
    // Nobody could have read it in a second.
    expect(at.message()).toBe(ms < 5_000 ? "发送过于频繁，请稍后再试" : "");
  });

  it("a digit that came faster than the answer stays, what was typed before the press does not", async () => {
    const server = browser();
    let answer: (value: object) => void = () => undefined;
    const later = () => new Promise<object>((resolve) => (answer = resolve));
    server.answers("/api/sms/send", later());
    const at = page();
    await at.type("48");
    await at.press();
    await at.type("48392");
    answer(SENT);
    await at.settle();
    expect([at.code.value, at.input.value, at.state()]).toEqual(["48392", "48392", "sent"]);
    await pass(60_000);
    server.answers("/api/sms/send", later());
    await at.press();
    answer(SENT);
    await at.settle();
    expect([at.code.value, at.input.value]).toEqual(["", ""]);
  });

  it("a code that came faster than the answer and was refused is still told so", async () => {
    const server = browser();
    let answer: (value: object) => void = () => undefined;
    server.answers("/api/sms/send", new Promise<object>((resolve) => (answer = resolve)));
    server.answers("/login", refusal(4004, { remaining: 4 }));
    const at = page();
    at.logsIn();
    await at.press();
    await at.type("483921");
    answer(SENT);
    await at.settle();
    expect(at.input.value).toBe("483921");
    expect(at.message()).toBe("验证码不正确，还可以再试 4 次");
  });

  it("goes to the session's own number without one being named", async () => {
    const server = browser();
    const at = page({ mobile: null });
    at.typed.scene = "confirm";
    await at.settle();
    await at.press();
    expect(server.sends()).toEqual([{ scene: "confirm" }]);
    expect(at.label()).toBe("60 秒后重发");
  });

  it("takes the wait over from a refusal, and lets it go with its end", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4002, { retryAfter: 130 }));
    const at = page();
    await at.press();
    expect(at.label()).toBe("2:10 后重发");
    expect(at.message()).toBe("发送过于频繁，请稍后再试");
    await pass(130_000);
    expect(at.message()).toBe("");
    expect(at.said()).toBe("可以重新获取验证码了");
  });

  it.each([
    [4008, null, "短信没有发出，可以马上再试；本次尝试已计入今日次数"],
    [4003, null, "今日发送次数已达上限，没有发出的也计入次数，请明天再试"],
    [4010, null, "这里不支持短信验证码，请联系工作人员"],
    [1500, null, "系统出错了，请稍后再试"],
    [1503, null, "系统暂时无法确认结果，请稍后再试"],
    [2004, null, "验证码服务暂不可用，请稍后再试"],
    [1403, null, "in the server's words"],
  ])("%i leaves no wait, and its words say what has counted", async (code, data, words) => {
    const server = browser();
    server.answers("/api/sms/send", refusal(code, data));
    const at = page();
    await at.press();
    expect(at.message()).toBe(words);
    expect(at.said()).toBe(words);
    expect(at.label()).toBe("获取验证码");
    expect(localStorage.length).toBe(0);
    await at.press();
    expect(server.sends().length).toBe(2);
  });

  it.each([
    [4006, { retryAfter: 590 }, "错误次数过多，约 10 分钟后再试"],
    [4009, { retryAfter: 3_000 }, "这个网络发送的短信过多，约 50 分钟后再试"],
    [1429, { retryAfter: 30 }, "尝试过于频繁，约 1 分钟后再试"],
    [4009, { retryAfter: 7_201 }, "这个网络发送的短信过多，约 2 小时 1 分钟后再试"],
  ])("%i says how long, and the button waits", async (code, data, words) => {
    const server = browser();
    server.answers("/api/sms/send", refusal(code, data));
    const at = page();
    await at.press();
    expect(at.message()).toBe(words);
    expect(at.button.getAttribute("aria-disabled")).toBe("true");
  });

  it("says that a message may be on its way when the answer was lost", async () => {
    const server = browser();
    server.answers("/api/sms/send", new TypeError("failed to fetch"));
    const at = page();
    await at.press();
    expect(at.message()).toBe("网络不稳，不知道短信是否已发出。没有收到的话，可以再试");
  });

  it("tells the page of a number that the server refuses", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4001));
    const at = page();
    await at.press();
    expect(at.refused).toEqual(["refused"]);
    expect(at.message()).toBe("手机号格式不正确，或暂不支持此号段");
  });

  it("speaks English where the page does", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4008));
    const at = page({ locale: "en" });
    await at.press();
    expect(at.message()).toContain("this try counts for today");
    expect(server.asked[0]?.headers).toMatchObject({ "Accept-Language": "en" });
  });
});

describe("the countdown", () => {
  it("survives a reload, under no number", async () => {
    browser();
    const at = page();
    await at.press();
    at.close();
    await pass(18_000);
    expect(JSON.stringify(Object.entries(localStorage))).not.toMatch(/138|0013|8000/);
    const again = page();
    expect(again.label()).toBe("42 秒后重发");
    expect(sessionStorage.length).toBe(0);
  });

  it("is right at once after timers slept in the background", async () => {
    browser();
    const at = page();
    await at.press();
    // The clock goes on, the timers do not.
    vi.setSystemTime(Date.now() + 59_000);
    expect(at.label()).toBe("60 秒后重发");
    await at.inSight();
    expect(at.label()).toBe("1 秒后重发");
  });

  it("is the same in two tabs", async () => {
    browser();
    const one = page();
    const two = page();
    await one.press();
    const [key] = Object.keys(localStorage);
    expect(two.label()).toBe("获取验证码");
    await two.otherTab("guidepost.locale");
    expect(two.label()).toBe("获取验证码");
    await two.otherTab(key ?? null);
    expect(two.label()).toBe("60 秒后重发");
    await pass(10_000);
    expect([one.label(), two.label()]).toEqual(["50 秒后重发", "50 秒后重发"]);
  });

  it("of a tab that was not told is taken over from the server", async () => {
    const server = browser();
    const one = page();
    const two = page();
    await one.press();
    localStorage.clear();
    server.answers("/api/sms/send", refusal(4002, { retryAfter: 57 }));
    await two.press();
    expect(two.label()).toBe("57 秒后重发");
  });

  it("goes on when the wall clock is put back", async () => {
    browser();
    const at = page();
    await at.press();
    await pass(20_000);
    vi.setSystemTime(Date.now() - 7_200_000);
    // Seen with the next tick.
    await pass(10_250);
    expect(at.label()).toBe("30 秒后重发");
  });

  it("belongs to the number: another one has its own, and the first finds its again", async () => {
    const server = browser();
    const at = page();
    await at.press();
    await at.type("4839");
    await pass(10_000);
    at.typed.mobile = "13900139000";
    await at.settle();
    expect(at.label()).toBe("获取验证码");
    expect(at.said(), "another number is no end of a wait").toBe("");
    expect(at.message()).toBe("");
    expect(at.code.value, "a code is worth nothing for another number").toBe("");
    await at.press();
    expect(server.sends().length).toBe(2);
    at.typed.mobile = "+86 138 0013 8000";
    await at.settle();
    expect(at.label()).toBe("50 秒后重发");
  });

  it("of a number that was left while its answer was on the way is kept for it, and not shown for another", async () => {
    const server = browser();
    let answer: (value: object) => void = () => undefined;
    server.answers("/api/sms/send", new Promise<object>((resolve) => (answer = resolve)));
    const at = page();
    await at.press();
    at.typed.mobile = "13900139000";
    await at.settle();
    answer(SENT);
    await at.settle();
    expect(at.state()).toBe("idle");
    expect(at.label()).toBe("获取验证码");
    at.typed.mobile = NUMBER;
    await at.settle();
    expect(at.label()).toBe("60 秒后重发");
  });

  it("stays while a number is retyped with spaces", async () => {
    browser();
    const at = page();
    await at.press();
    await at.type("4839");
    at.typed.mobile = "138 0013 8000";
    await at.settle();
    expect(at.state()).toBe("sent");
    expect(at.code.value).toBe("4839");
  });

  it("leaves no timer and no listener behind", async () => {
    browser();
    const at = page();
    await at.press();
    expect(vi.getTimerCount()).toBe(1);
    at.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("typing", () => {
  it.each(["483921", "４８３９２１", " 483 921\r\n", "\ufeff483\u200b921"])(
    "%j goes in as digits",
    async (text) => {
      browser();
      const at = page();
      await at.type(text);
      expect(at.input.value).toBe("483921");
      expect(at.code.value).toBe("483921");
      expect(at.submitted).toEqual(["483921"]);
    },
  );

  it("has the keyboard, the autofill and the label that phones look for", () => {
    browser();
    const at = page();
    expect(at.input.inputMode).toBe("numeric");
    expect(at.input.autocomplete).toBe("one-time-code");
    expect(at.input.type).toBe("text");
    expect(document.querySelector("label")?.htmlFor).toBe(at.input.id);
    // A native limit would cut a paste before its spaces are dropped.
    expect(at.input.hasAttribute("maxlength")).toBe(false);
  });

  it("says what is wrong under the field, and takes it back with the next good key", async () => {
    browser();
    const at = page();
    await at.type("48a");
    expect(at.fault()).toBe("验证码是 6 位数字");
    expect(at.input.getAttribute("aria-invalid")).toBe("true");
    expect(at.said()).toBe("验证码是 6 位数字");
    await at.type("48");
    expect(at.fault()).toBe("");
    await at.type("13800138000");
    expect(at.fault()).toBe("粘贴的内容超过 6 位，请核对");
    await at.submit();
    expect(at.submitted).toEqual([]);
  });

  it("by hand says what is missing, with the focus back", async () => {
    browser();
    const at = page();
    await at.submit();
    expect(at.fault()).toBe("请输入短信里的验证码");
    await at.type("123");
    await at.submit();
    expect(at.fault()).toBe("验证码是 6 位数字");
    expect(document.activeElement).toBe(at.input);
    expect(at.submitted).toEqual([]);
  });

  it("does not disturb an input method, and still knows the code", async () => {
    browser();
    const at = page();
    at.input.dispatchEvent(new CompositionEvent("compositionstart"));
    await at.type("４８３ma", true);
    expect(at.input.value, "left as it is while it composes").toBe("４８３ma");
    expect(at.fault()).toBe("");
    await at.type("４８３９２", true);
    expect(at.code.value).toBe("48392");
    expect(at.input.value).toBe("４８３９２");
    await at.type("４８３９２１", true);
    expect(at.submitted).toEqual(["483921"]);
    at.input.value = "４８３９２１";
    at.input.dispatchEvent(new CompositionEvent("compositionend"));
    await at.settle();
    expect(at.input.value).toBe("483921");
    expect(at.submitted, "the end of the composition is no second code").toEqual(["483921"]);
  });

  it("a wrong code by an input method is one try, shown clean once the composition has ended", async () => {
    const server = browser();
    const asked = () => server.asked.filter(({ path }) => path === "/login").length;
    server.answers("/login", refusal(4004, { remaining: 4 }), refusal(4004, { remaining: 3 }));
    const at = page();
    at.logsIn();
    at.input.focus();
    at.input.dispatchEvent(new CompositionEvent("compositionstart"));
    await at.type("１１１１１１", true);
    expect(at.message()).toBe("验证码不正确，还可以再试 4 次");
    expect(at.input.value, "left as it is while it composes").toBe("１１１１１１");
    // As Chromium ends it, and as Safari does, which empties the field in between.
    for (const text of ["１１１１１１", "", "１１１１１１"]) await at.type(text, true);
    at.input.dispatchEvent(new CompositionEvent("compositionend"));
    await at.settle();
    expect([at.input.selectionStart, at.input.selectionEnd]).toEqual([0, 6]);
    // Firefox tells the input once more after the end.
    await at.type("１１１１１１");
    expect(asked()).toBe(1);
    expect([at.input.value, at.code.value]).toEqual(["111111", "111111"]);
    expect(at.message()).toBe("验证码不正确，还可以再试 4 次");
    // By a press it may be sent again.
    await at.submit();
    expect(asked()).toBe(2);
    expect(at.message()).toBe("验证码不正确，还可以再试 3 次");
  });

  it("other digits in the same composition are another try", async () => {
    const server = browser();
    server.answers("/login", refusal(4004, { remaining: 4 }));
    const at = page();
    at.logsIn();
    at.input.dispatchEvent(new CompositionEvent("compositionstart"));
    await at.type("１１１１１１", true);
    await at.type("１１１１１２", true);
    expect(server.asked.filter(({ path }) => path === "/login").map(({ body }) => body.code)).toEqual([
      "111111",
      "111112",
    ]);
  });

  it("what a composition leaves behind is cleaned while the code is being checked", async () => {
    browser();
    const at = page();
    let done: () => void = () => undefined;
    at.onSubmit.mockImplementation(() => new Promise((resolve) => (done = resolve)));
    await at.type("123");
    at.input.dispatchEvent(new CompositionEvent("compositionstart"));
    await at.type("123４５６", true);
    expect(at.onSubmit).toHaveBeenCalledWith("123456");
    at.input.dispatchEvent(new CompositionEvent("compositionend"));
    await at.settle();
    expect(at.input.value).toBe("123456");
    done();
    await at.settle();
    expect([at.input.value, at.onSubmit.mock.calls.length]).toEqual(["123456", 1]);
  });

  it("follows the page's own value", async () => {
    browser();
    const at = page();
    at.code.value = "12";
    await nextTick();
    expect(at.input.value).toBe("12");
  });
});

describe("submitting", () => {
  it("goes by itself once, though the hand taps on", async () => {
    browser();
    const at = page();
    let done: () => void = () => undefined;
    at.onSubmit.mockImplementation((code) => {
      at.submitted.push(code);
      return new Promise((resolve) => (done = resolve));
    });
    await at.type("483921");
    await at.submit();
    await at.type("483921");
    expect(at.submitted).toEqual(["483921"]);
    expect(at.input.readOnly).toBe(true);
    expect(at.said()).toBe("正在核对验证码");
    done();
    await at.settle();
    expect(at.input.readOnly).toBe(false);
  });

  it("shows that it is under way in place of what was said before, and after 10 s for how long", async () => {
    browser();
    const at = page();
    let done: (fault: Error) => void = () => undefined;
    at.onSubmit.mockImplementation(() => new Promise((_, reject) => (done = reject)));
    await at.press();
    expect(at.message()).toContain("已发送");
    await at.type("483921");
    expect(at.message()).toBe("正在核对验证码");
    await pass(10_500);
    expect(at.message()).toBe("正在核对验证码");
    await pass(1_500);
    expect(at.message()).toBe("正在核对验证码，已等待 12 秒");
    expect(at.said(), "seconds are not read out").toBe("正在核对验证码");
    done(new Error("a bug"));
    await at.settle();
    expect(at.message()).toBe("出了点问题，请再试一次");
    at.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("the words are the language's that is chosen now, those of a screen reader among them", async () => {
    const server = browser();
    server.answers("/login", refusal(2004));
    const at = page();
    at.logsIn();
    await at.press();
    expect(at.said()).toBe("已发送，5 分钟内有效，以最新一条短信为准");
    at.locale.value = "en";
    await at.settle();
    expect(at.said()).toBe("Code sent, good for 5 min. Only the newest message counts.");
    await at.type("48a");
    expect(at.said()).toBe("The code is six digits");
    await at.type("483921");
    at.locale.value = "zh-CN";
    await at.settle();
    expect(at.message()).toBe("验证码服务暂不可用，请稍后再试");
    expect(at.said()).toBe(at.message());
  });

  it.each([
    [4004, { remaining: 3 }, "验证码不正确，还可以再试 3 次"],
    [4004, { remaining: 0 }, "验证码不正确，次数已用完，请在倒计时结束后重新获取"],
    [4004, null, "验证码不正确，请核对后再试"],
    [4005, null, "验证码已过期或已使用，请重新获取"],
    [4006, { retryAfter: 600 }, "错误次数过多，约 10 分钟后再试"],
    [1429, { retryAfter: 90 }, "尝试过于频繁，约 2 分钟后再试"],
    [1403, null, "in the server's words"],
  ])("%i gives the focus and the selection back", async (code, data, words) => {
    const server = browser();
    server.answers("/login", refusal(code, data));
    const at = page();
    const client = new Client({ language: () => "zh-CN" });
    at.onSubmit.mockImplementation(async (one) => {
      at.submitted.push(one);
      await client.post("/login", { code: one });
    });
    at.button.focus();
    await at.type("483921");
    expect(at.message()).toBe(words);
    expect(at.said()).toBe(words);
    expect(document.activeElement).toBe(at.input);
    expect([at.input.selectionStart, at.input.selectionEnd]).toEqual([0, 6]);
    expect(at.input.readOnly).toBe(false);
    // Typing goes over the selection; the same digits again are a new try.
    await at.type("4");
    expect(at.message()).toBe("");
    server.answers("/login", { code: 0, msg: "", data: null });
    await at.type("483921");
    expect(at.submitted).toEqual(["483921", "483921"]);
  });

  it("the last wrong code locks the number, and the server's own seconds correct the usual ten minutes", async () => {
    const server = browser();
    server.answers("/login", refusal(4004, { remaining: 0 }), refusal(4006, { retryAfter: 60 }));
    const at = page();
    at.logsIn();
    await at.type("483921");
    expect(at.label()).toBe("10:00 后重发");
    await at.press();
    expect(server.sends()).toEqual([]);
    await at.submit();
    expect(at.label()).toBe("60 秒后重发");
    await pass(60_000);
    expect(at.label()).toBe("重新获取");
    expect(at.message(), "what had to be waited for is over").toBe("");
    await at.press();
    expect(server.sends()).toHaveLength(1);
  });

  it.each([1, undefined])("a wrong code with %s tries left locks nothing", async (remaining) => {
    const server = browser();
    server.answers("/login", refusal(4004, { remaining }));
    const at = page();
    at.logsIn();
    await at.type("483921");
    expect(at.label()).toBe("获取验证码");
  });

  it("what was said of a number goes when the number is cleared", async () => {
    const server = browser();
    server.answers("/login", refusal(4004, { remaining: 3 }));
    const at = page();
    at.logsIn();
    await at.type("483921");
    expect(at.message()).toContain("还可以再试 3 次");
    at.typed.mobile = "";
    await at.settle();
    expect(at.message()).toBe("");
  });

  it("a send that failed has killed the older code as well", async () => {
    const server = browser();
    const at = page();
    await at.press();
    await at.type("4839");
    await pass(60_000);
    server.answers("/api/sms/send", refusal(4008));
    await at.press();
    expect([at.code.value, at.input.value]).toEqual(["", ""]);
    expect(at.message()).toContain("短信没有发出");
  });

  it("a pasted message is an error under the field, and nothing of it stays", async () => {
    browser();
    const at = page();
    await at.type("【博物馆】验证码 483921，5 分钟内有效");
    expect(at.fault()).toBe("验证码是 6 位数字");
    expect([at.code.value, at.input.value, at.submitted]).toEqual(["", "", []]);
  });

  it("locked means that no code is sent either", async () => {
    const server = browser();
    server.answers("/login", refusal(4006, { retryAfter: 600 }));
    const at = page();
    at.logsIn();
    await at.type("483921");
    expect(at.label()).toBe("10:00 后重发");
    await at.press();
    expect(server.sends()).toEqual([]);
  });

  it("a new message makes the typed code worthless", async () => {
    browser();
    const at = page();
    at.onSubmit.mockRejectedValue(new Error("a bug"));
    await at.type("483921");
    expect(at.message()).toBe("出了点问题，请再试一次");
    await at.press();
    expect(at.code.value).toBe("");
    expect(at.input.value).toBe("");
    expect(at.message()).toContain("已发送");
  });
});

describe("the captcha", () => {
  const CHALLENGE = { algorithm: "SHA-256", challenge: "ab", maxnumber: 9, salt: "s", signature: "ff" };

  it("comes when the server asks for it and only then, and the message goes out without another press", async () => {
    const server = browser();
    const prove = vi.fn<Prove>(async () => {
      await new Promise((resolve) => setTimeout(resolve, 12_000));
      return "proof";
    });
    const at = page({ prove });
    await at.press();
    expect(prove).not.toHaveBeenCalled();
    await pass(60_000);
    server.answers("/api/sms/send", refusal(4007));
    server.answers("/api/captcha", { code: 0, msg: "", data: CHALLENGE });
    await at.press();
    expect(at.state()).toBe("proving");
    expect(at.message()).toBe("正在进行安全验证，无需操作");
    expect(at.said()).toBe("正在进行安全验证，无需操作");
    await at.press();
    await pass(11_500);
    expect(at.message()).toBe("正在进行安全验证，已等待 11 秒");
    expect(at.said(), "seconds are not read out").toBe("正在进行安全验证，无需操作");
    await pass(500);
    expect(at.state()).toBe("sent");
    expect(prove.mock.calls[0]?.[0]).toEqual(CHALLENGE);
    expect(prove.mock.calls[0]?.[1]).toMatchObject({ cores: 8 });
    const body = { mobile: "+8613800138000", scene: "login" };
    expect(server.asked.slice(1).map((one) => [one.path, one.body])).toEqual([
      ["/api/sms/send", body],
      ["/api/captcha", body],
      ["/api/sms/send", { ...body, captchaToken: "proof" }],
    ]);
  });

  it("that is refused is said, and never goes in a circle", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4007), refusal(4007));
    const at = page({ prove: () => Promise.resolve("proof") });
    await at.press();
    expect(at.message()).toBe("安全验证没有通过，请再试一次");
    expect(server.sends().length).toBe(2);
    await pass(60_000);
    expect(server.sends().length).toBe(2);
  });

  it("that got no answer has surely sent no message", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4007));
    server.answers("/api/captcha", new TypeError("failed to fetch"));
    const at = page();
    await at.press();
    expect(at.message()).toBe("网络不通，短信没有发送，请检查网络后再试");
    expect(at.label()).toBe("获取验证码");
  });

  it("that cannot be solved is said, and can be tried again", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4007));
    const at = page({ prove: () => Promise.reject(new CaptchaFailed()) });
    await at.press();
    expect(at.message()).toBe("安全验证没有通过，请再试一次");
    await at.press();
    expect(at.state()).toBe("sent");
  });

  it("is given up on when the number changes", async () => {
    const server = browser();
    server.answers("/api/sms/send", refusal(4007));
    const prove = vi.fn<Prove>(
      (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            reject(new CaptchaFailed());
          });
        }),
    );
    const at = page({ prove });
    await at.press();
    expect(at.state()).toBe("proving");
    at.typed.mobile = "13900139000";
    await at.settle();
    expect(at.state()).toBe("idle");
    expect(at.message()).toBe("");
    expect(at.said()).toBe("");
    expect(server.sends().length).toBe(1);
  });
});
