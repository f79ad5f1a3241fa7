// Signing in at the kiosk: a played shell, fake time, a real document; by the keypad, by keys, and what goes wrong.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type App, createApp } from "vue";
import { makeWords } from "../shared/i18n";
import { common as en, kiosk as enKiosk } from "../shared/i18n/en";
import { common as zh, kiosk as zhKiosk } from "../shared/i18n/zh-CN";
import type { Prove } from "../shared/sms/captcha";
import type { CommandError, Host } from "./host";
import LogIn from "./LogIn.vue";

let app: App | undefined;

// The shell rejects with a plain object, as Tauri does.
// eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
const no = (error: CommandError) => Promise.reject(error);
const refused = (code: number, data: unknown = null) => no({ kind: "refused", code, message: "", data });

function open(voice = false) {
  const words = makeWords("zh-CN", {
    "zh-CN": { common: zh, kiosk: zhKiosk },
    en: { common: en, kiosk: enKiosk },
  });
  const host = {
    sendSms: vi.fn<Host["sendSms"]>(() => Promise.resolve({ expireIn: 300, retryAfter: 60 })),
    captcha: vi.fn<Host["captcha"]>(() =>
      Promise.resolve({ algorithm: "SHA-256", challenge: "c", maxnumber: 9, salt: "s&", signature: "g" }),
    ),
    smsLogin: vi.fn<Host["smsLogin"]>(() => Promise.resolve()),
  };
  const prove = vi.fn<Prove>(() => Promise.resolve("solved"));
  const root = document.createElement("div");
  document.body.append(root);
  app = createApp(LogIn, { host, prove, voice });
  app.use(words.plugin).mount(root);
  const find = (id: string): HTMLInputElement => {
    const found = root.querySelector<HTMLInputElement>(`[data-testid=${id}]`);
    if (!found) throw new Error(`there is no ${id}`);
    return found;
  };
  const settle = () => vi.advanceTimersByTimeAsync(0);
  const press = async (...ids: string[]) => {
    for (const id of ids) {
      find(id).click();
      await settle();
    }
  };
  return {
    host,
    prove,
    find,
    press,
    settle,
    keys: (digits: string) => press(...Array.from(digits, (digit) => `key-${digit}`)),
    text: (id: string) => find(id).textContent.trim(),
    type: async (id: string, text: string) => {
      find(id).value = text;
      find(id).dispatchEvent(new InputEvent("input"));
      await settle();
    },
    /** The key Enter; whether the page leaves to the browser what it does by itself. */
    enter: async (id: string, repeat = false) => {
      const event = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, repeat });
      find(id).dispatchEvent(event);
      await settle();
      return !event.defaultPrevented;
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
});
afterEach(() => {
  app?.unmount();
  document.body.replaceChildren();
  vi.useRealTimers();
});

describe("by touch alone", () => {
  it("the keys type into the number, then into the code, and the sixth digit signs in", async () => {
    const page = open();
    expect(document.activeElement).toBe(page.find("mobile"));
    await page.keys("13900000001");
    expect(page.find("mobile").value).toBe("13900000001");
    await page.press("sms-send");
    expect(page.host.sendSms).toHaveBeenCalledWith("+8613900000001", null, null);
    expect(document.activeElement).toBe(page.find("sms-code"));
    await page.keys("048392");
    expect(page.host.smsLogin).toHaveBeenCalledOnce();
    const [mobile, code, requestId] = page.host.smsLogin.mock.calls[0] ?? [];
    expect([mobile, code]).toEqual(["+8613900000001", "048392"]);
    expect(requestId).toMatch(/^[0-9a-f]{32}$/);
  });

  it("who gets no message can be called, where there is a channel for it", async () => {
    const page = open(true);
    await page.keys("13900000001");
    await page.press("sms-send");
    await vi.advanceTimersByTimeAsync(60_000);
    await page.press("sms-voice");
    expect(page.host.sendSms).toHaveBeenLastCalledWith("+8613900000001", null, "voice");
    expect(page.text("sms-message")).toBe("即将来电播报验证码，5 分钟内有效，以最新的验证码为准");
  });

  it("a wrong code is selected, so that the next key begins anew", async () => {
    const page = open();
    page.host.smsLogin.mockImplementationOnce(() => refused(4004, { remaining: 4 }));
    await page.keys("13900000001");
    await page.press("sms-send");
    await page.keys("111111");
    expect(page.text("sms-message")).toBe("验证码不正确，还可以再试 4 次");
    await page.keys("0");
    expect(page.find("sms-code").value).toBe("0");
    await page.press("key-backspace");
    await page.keys("04839");
    await page.press("key-backspace");
    await page.keys("92");
    expect(page.host.smsLogin.mock.lastCall?.[1]).toBe("048392");
  });

  it("the plus is where nothing can be cleared, and 'clear' empties the field that is typed into", async () => {
    const page = open();
    await page.press("key-plus");
    await page.keys("852");
    expect(page.find("mobile").value).toBe("+852");
    await page.press("key-clear");
    expect(page.find("mobile").value).toBe("");
    await page.keys("13900000001");
    page.find("sms-code").focus();
    await page.keys("12");
    await page.press("key-clear");
    expect([page.find("mobile").value, page.find("sms-code").value]).toEqual(["13900000001", ""]);
  });

  it("no more digits are taken than a number can have, and that is said", async () => {
    const page = open();
    await page.keys("1".repeat(18));
    expect(page.text("mobile-fault")).toBe("");
    await page.keys("2");
    expect(page.find("mobile").value).toBe("1".repeat(18));
    expect(page.text("mobile-fault")).toBe("号码太长：应为 11 位，境外加 + 区号");
    await page.press("key-backspace");
    expect(page.text("mobile-fault")).toBe("");
  });

  it("a code that is being checked says so, and for how long", async () => {
    const page = open();
    page.host.smsLogin.mockImplementationOnce(() => new Promise(() => undefined));
    await page.keys("13900000001");
    await page.press("sms-send");
    await page.keys("111111");
    expect(page.text("sms-message")).toBe("正在核对验证码");
    await vi.advanceTimersByTimeAsync(12_000);
    expect(page.text("sms-message")).toBe("正在核对验证码，已等待 12 秒");
  });

  it("a key over a selection of the number takes its place", async () => {
    const page = open();
    await page.keys("13900000002");
    page.find("mobile").setSelectionRange(10, 11);
    await page.keys("1");
    expect(page.find("mobile").value).toBe("13900000001");
  });
});

describe("by keys", () => {
  it("Enter goes from the number to what asks for a code, to the code where one was sent, and from there in", async () => {
    const page = open();
    await page.enter("mobile");
    expect(page.text("mobile-fault")).toBe("请输入手机号");
    await page.type("mobile", "１３９ 0000 0001");
    await page.enter("mobile");
    expect(document.activeElement).toBe(page.find("sms-send"));
    await page.press("sms-send");
    page.find("mobile").focus();
    await page.enter("mobile");
    expect(document.activeElement).toBe(page.find("sms-code"));
    await page.enter("sms-code");
    expect(page.text("sms-fault")).toBe("请输入短信里的验证码");
    await page.type("sms-code", "０４８392");
    expect(page.host.smsLogin.mock.lastCall?.slice(0, 2)).toEqual(["+8613900000001", "048392"]);
  });
});

it("Enter held on the button that asks for a code does not go on to use an empty one", async () => {
  const page = open();
  await page.keys("13900000001");
  expect(await page.enter("sms-send"), "a press of the button").toBe(true);
  await page.press("sms-send");
  expect(document.activeElement).toBe(page.find("sms-code"));
  expect(await page.enter("sms-code", true)).toBe(false);
  expect(page.text("sms-fault")).toBe("");
  expect(await page.enter("sms-send", true)).toBe(false);
});

describe("what the shell says", () => {
  it("a captcha is asked for through it, and the send repeated", async () => {
    const page = open();
    page.host.sendSms.mockImplementationOnce(() => refused(4007));
    await page.keys("13900000001");
    await page.press("sms-send");
    expect(page.prove.mock.lastCall?.[0]).toMatchObject({ salt: "s&" });
    expect(page.host.captcha).toHaveBeenCalledWith("+8613900000001");
    expect(page.host.sendSms.mock.lastCall).toEqual(["+8613900000001", "solved", null]);
    expect(page.text("sms-message")).toContain("已发送");
  });

  it("the wait is the server's", async () => {
    const page = open();
    page.host.sendSms.mockImplementationOnce(() => refused(4002, { retryAfter: 42 }));
    await page.keys("13900000001");
    await page.press("sms-send");
    expect(page.text("sms-send")).toBe("42 秒后重发");
    await page.press("sms-send");
    expect(page.host.sendSms).toHaveBeenCalledOnce();
  });

  it("a message that surely was not sent is told so, and one of which nobody knows is not", async () => {
    const page = open();
    page.host.sendSms
      .mockImplementationOnce(() => no({ kind: "unsent" }))
      .mockImplementationOnce(() => no({ kind: "away", away: "network" }));
    await page.keys("13900000001");
    await page.press("sms-send");
    expect(page.text("sms-message")).toBe("网络不通，短信没有发送，请检查网络后再试");
    await page.press("sms-send");
    expect(page.text("sms-message")).toBe("网络不稳，不知道短信是否已发出。没有收到的话，可以再试");
  });

  it.each<[CommandError, string]>([
    [{ kind: "away", away: "network" }, "网络不通，请检查网络后再试"],
    [{ kind: "away", away: "code_service" }, "服务器没有响应，请稍后再试"],
    [{ kind: "internal" }, "出了点问题，请再试一次"],
    [{ kind: "refused", code: 1403, message: "x", data: null }, "此手机号不是讲解员账号，请联系管理员"],
    [
      { kind: "refused", code: 1403, message: "x", data: { reason: "no_account" } },
      "此手机号不是讲解员账号，请联系管理员",
    ],
    [
      { kind: "refused", code: 1400, message: "x", data: { field: "tenant-id" } },
      "核销台没有设置场馆，请联系管理员",
    ],
    [
      { kind: "refused", code: 4006, message: "x", data: { retryAfter: 540 } },
      "错误次数过多，约 9 分钟后再试",
    ],
    [{ kind: "refused", code: null, message: "新版服务器的话", data: null }, "新版服务器的话"],
  ])("%j is told in the guide's words", async (error, words) => {
    const page = open();
    page.host.smsLogin.mockImplementationOnce(() => no(error));
    await page.keys("13900000001");
    await page.type("sms-code", "048392");
    expect(page.text("sms-message")).toBe(words);
  });

  it("an attempt whose answer was lost is repeated under its own name, a refused one under a new", async () => {
    const page = open();
    page.host.smsLogin
      .mockImplementationOnce(() => no({ kind: "away", away: "network" }))
      .mockImplementationOnce(() => refused(4004, { remaining: 4 }));
    await page.keys("13900000001");
    await page.type("sms-code", "048392");
    await page.press("submit");
    await page.press("submit");
    const ids = page.host.smsLogin.mock.calls.map(([, , requestId]) => requestId);
    expect(ids).toHaveLength(3);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
  });
});

it("a number that nobody goes on with is wiped: everybody can read this screen", async () => {
  const page = open();
  await page.keys("13900000001");
  page.find("mobile").dispatchEvent(new Event("pointerdown", { bubbles: true }));
  await vi.advanceTimersByTimeAsync(299_000);
  expect(page.find("mobile").value).toBe("13900000001");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(page.find("mobile").value).toBe("");
});
