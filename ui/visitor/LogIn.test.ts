// From the number to the visitor's session: a played server behind fetch, fake time, a real document.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type App, createApp } from "vue";
import { Client } from "../shared/api/client";
import { makeWords } from "../shared/i18n";
import { common as en, visitor as enVisitor } from "../shared/i18n/en";
import { common as zh, visitor as zhVisitor } from "../shared/i18n/zh-CN";
import LogIn from "./LogIn.vue";

const WELL = { code: 0, msg: "", data: { expireIn: 300, retryAfter: 60 } };
let app: App | undefined;
const asked: { path: string; body: Record<string, unknown>; headers: Record<string, string> }[] = [];
const logIns: (object | Error)[] = [];

function open(tenant?: string) {
  const words = makeWords("zh-CN", {
    "zh-CN": { common: zh, visitor: zhVisitor },
    en: { common: en, visitor: enVisitor },
  });
  const client = new Client({ language: () => words.locale.value, tenant });
  const onIn = vi.fn();
  const root = document.createElement("div");
  document.body.append(root);
  app = createApp(LogIn, { client, onIn });
  app.use(words.plugin).mount(root);
  const find = (id: string): HTMLInputElement => {
    const found = root.querySelector<HTMLInputElement>(`[data-testid=${id}]`);
    if (!found) throw new Error(`there is no ${id}`);
    return found;
  };
  const settle = () => vi.advanceTimersByTimeAsync(0);
  const type = async (id: string, text: string) => {
    const input = find(id);
    input.value = text;
    input.dispatchEvent(new InputEvent("input"));
    await settle();
  };
  return {
    onIn,
    find,
    type,
    text: (id: string) => find(id).textContent.trim(),
    press: async (id: string) => {
      find(id).click();
      await settle();
    },
    leave: async (id: string) => {
      find(id).dispatchEvent(new Event("blur"));
      await settle();
    },
    /** A key; whether the page leaves to the browser what it does by itself. */
    key: async (id: string, options: KeyboardEventInit = {}) => {
      const event = new KeyboardEvent("keydown", {
        key: "Enter",
        bubbles: true,
        cancelable: true,
        ...options,
      });
      find(id).dispatchEvent(event);
      await settle();
      return !event.defaultPrevented;
    },
    /** The page's own button. */
    enter: async () => {
      find("log-in").dispatchEvent(new Event("submit", { cancelable: true }));
      await settle();
    },
  };
}

const bodies = () => asked.filter(({ path }) => path === "/api/auth/sms-login").map(({ body }) => body);

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  asked.length = 0;
  logIns.length = 0;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    asked.push({
      path,
      body: JSON.parse(init.body as string) as Record<string, unknown>,
      headers: init.headers as Record<string, string>,
    });
    const answer = path === "/api/auth/sms-login" ? (logIns.shift() ?? WELL) : WELL;
    return answer instanceof Error
      ? Promise.reject(answer)
      : Promise.resolve(new Response(JSON.stringify(answer)));
  });
});
afterEach(() => {
  app?.unmount();
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("the way in", () => {
  it("is number, code, in", async () => {
    const page = open("2");
    await page.type("mobile", "１３８ 0013 8000");
    await page.leave("mobile");
    expect(page.find("mobile").value).toBe("13800138000");
    await page.press("sms-send");
    expect(document.activeElement).toBe(page.find("sms-code"));
    await page.type("sms-code", "０４８ 392");
    expect(page.onIn).toHaveBeenCalledOnce();
    expect(asked.map(({ path }) => path)).toEqual(["/api/sms/send", "/api/auth/sms-login"]);
    for (const { headers } of asked) expect(headers).toMatchObject({ "X-Client": "web", "tenant-id": "2" });
    const [body] = bodies();
    expect(body).toEqual({ mobile: "+8613800138000", code: "048392", requestId: body?.requestId });
    expect(body?.requestId).toMatch(/^[0-9a-f]{32}$/);
  });

  it("takes no more digits than a number can have, and says so", async () => {
    const page = open();
    await page.type("mobile", "1".repeat(32));
    expect(page.find("mobile").value).toBe("1".repeat(18));
    expect(page.text("mobile-fault")).toBe("号码太长：应为 11 位，境外加 + 区号");
    await page.type("mobile", " １３８ 0013 8000 ");
    expect(page.find("mobile").value).toBe(" １３８ 0013 8000 ");
    expect(page.text("mobile-fault")).toBe("");
  });

  it("names no tenant where the address names none", async () => {
    const page = open();
    await page.type("mobile", "13800138000");
    await page.press("sms-send");
    expect(asked[0]?.headers).not.toHaveProperty("tenant-id");
  });

  it("says under the number what is wrong with it, and goes back to it", async () => {
    const page = open();
    await page.press("sms-send");
    expect(page.text("mobile-fault")).toBe("请输入手机号");
    expect(document.activeElement).toBe(page.find("mobile"));
    await page.type("mobile", "1380013");
    expect(page.text("mobile-fault")).toBe("");
    await page.leave("mobile");
    expect(page.text("mobile-fault")).toBe("请输入 11 位手机号，境外加 + 区号");
    expect(page.find("mobile").getAttribute("aria-invalid")).toBe("true");
    await page.type("sms-code", "048392");
    expect(asked).toEqual([]);
    await page.type("mobile", "13800138000");
    await page.enter();
    expect(page.onIn).toHaveBeenCalledOnce();
  });

  it("Enter goes from the number to what asks for a code, and to the code where one was sent", async () => {
    const page = open();
    await page.key("mobile");
    expect(page.text("mobile-fault")).toBe("请输入手机号");
    await page.type("mobile", "13800138000");
    await page.key("mobile", { isComposing: true });
    await page.key("mobile");
    expect(document.activeElement).toBe(page.find("sms-send"));
    expect(page.text("sms-fault"), "nobody has asked for a code yet").toBe("");
    // Held down it goes no further: the button would be pressed, then the empty code used.
    expect(await page.key("sms-send", { repeat: true })).toBe(false);
    expect(await page.key("sms-send")).toBe(true);
    await page.press("sms-send");
    page.find("mobile").focus();
    await page.key("mobile");
    expect(document.activeElement).toBe(page.find("sms-code"));
    expect(await page.key("sms-code", { repeat: true })).toBe(false);
    expect(page.text("sms-fault")).toBe("");
    await page.key("sms-code");
    expect(page.text("sms-fault")).toBe("请输入短信里的验证码");
  });

  it("with its button says what is missing", async () => {
    const page = open();
    await page.enter();
    expect(page.text("mobile-fault")).toBe("请输入手机号");
    await page.type("mobile", "13800138000");
    await page.enter();
    expect(page.text("sms-fault")).toBe("请输入短信里的验证码");
    expect(document.activeElement).toBe(page.find("sms-code"));
    expect(asked).toEqual([]);
  });

  it("repeats an attempt whose answer was lost under its own name, and a refused one under a new", async () => {
    logIns.push(
      new TypeError("failed to fetch"),
      { code: 4004, msg: "", data: { remaining: 4 } },
      { code: 4004, msg: "", data: { remaining: 3 } },
    );
    const page = open();
    await page.type("mobile", "13800138000");
    await page.type("sms-code", "048392");
    expect(page.text("sms-message")).toBe("网络不通，请检查网络后再试");
    await page.enter();
    expect(page.text("sms-message")).toBe("验证码不正确，还可以再试 4 次");
    await page.enter();
    await page.enter();
    expect(page.onIn).toHaveBeenCalledOnce();
    const ids = bodies().map(({ requestId }) => requestId);
    expect(ids[1]).toBe(ids[0]);
    expect(new Set(ids).size).toBe(3);
  });

  it.each([
    [{ code: 1403, msg: "", data: { reason: "no_account" } }, "此手机号没有预约，请用预约时的手机号"],
    [{ code: 1400, msg: "", data: { field: "tenant-id" } }, "链接里缺少场馆，请从场馆发给您的链接进入"],
    [{ code: 1503, msg: "the server's words", data: null }, "系统暂时无法确认结果，请稍后再试"],
    [{ code: 1403, msg: "服务器的话", data: null }, "服务器的话"],
  ])("tells %j in the visitor's words", async (answer, words) => {
    logIns.push(answer);
    const page = open();
    await page.type("mobile", "13800138000");
    await page.type("sms-code", "048392");
    expect(page.text("sms-message")).toBe(words);
    expect(page.onIn).not.toHaveBeenCalled();
  });
});
