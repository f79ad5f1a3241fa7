// Signing in by SMS code in a browser: the real server, its codes carried by a gateway that the test plays.
import { expect, type Page, test as base } from "@playwright/test";
import { faults } from "./accessibility";
import { type Gateway, openGateway } from "./sms-gateway";
import { digits, openVenue, type Venue } from "./visitor-server";

/** One of the demo's visitors. */
const NUMBER = "13800000001";
const ANOTHER = "13800000002";

const test = base.extend<{
  settings: Record<string, string>;
  /** Whether there is a channel that speaks. */
  voice: boolean;
  gateway: Gateway;
  venue: Venue;
}>({
  settings: [{}, { option: true }],
  voice: [false, { option: true }],
  // Playwright reads the dependencies from the pattern, so it cannot be left out.
  // eslint-disable-next-line no-empty-pattern
  gateway: async ({}, use) => {
    const gateway = await openGateway();
    await use(gateway);
    await gateway.close();
  },
  venue: async ({ gateway, settings, voice }, use) => {
    const written = { name: "gateway", kind: "http", url: gateway.url };
    const spoken = { name: "calls", kind: "http", url: `${gateway.url}/calls`, voice: true };
    const channels = JSON.stringify(voice ? [written, spoken] : [written]);
    const venue = await openVenue({
      codeLife: 60,
      settings: { GUIDEPOST_SMS__CHANNELS: channels, ...settings },
    });
    await use(venue);
    await venue.stop();
  },
});

/** Everything that the live region has said, in order. */
async function listen(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    new MutationObserver(() => {
      const text = document.querySelector("[data-testid=sms-said]")?.textContent ?? "";
      if (text !== "" && text !== heard.at(-1)) heard.push(text);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  return () => page.evaluate(() => (window as unknown as { heard: string[] }).heard);
}

async function askFor(page: Page, number: string): Promise<void> {
  await page.getByTestId("mobile").fill(number);
  await page.getByTestId("sms-send").click();
}

async function secondsLeft(page: Page): Promise<number> {
  const text = await page.getByTestId("sms-send").innerText();
  return Number(/^(\d+) 秒后重发$/.exec(text)?.[1]);
}

/** A code of six digits that is not this one. */
function wrong(code: string): string {
  return code.replace(/^./, (digit) => String((Number(digit) + 1) % 10));
}

test.beforeEach(({ page }) => {
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) throw new Error(message.text());
  });
  page.on("pageerror", (error) => {
    throw error;
  });
});

test("from the number to the code page, by the keyboard alone", async ({ page, venue, gateway, context }) => {
  const sent: { path: string; tenant: string | undefined; client: string | undefined; body: string }[] = [];
  page.on("request", (request) => {
    if (request.method() !== "POST") return;
    const headers = request.headers();
    sent.push({
      path: new URL(request.url()).pathname,
      tenant: headers["tenant-id"],
      client: headers["x-client"],
      body: request.postData() ?? "",
    });
  });
  await page.goto(`${venue.url}/?tenant=1`);
  await expect(page.getByTestId("plain")).toHaveText("请登录");
  await page.getByTestId("language").focus();
  await page.keyboard.press("Tab");
  await expect(page.getByTestId("mobile")).toBeFocused();
  await page.keyboard.type("138 0000 0001");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("sms-send")).toBeFocused();
  await expect(page.getByTestId("sms-fault")).toBeEmpty();
  // Held down: the button is pressed once, and no empty code is used.
  for (let held = 0; held < 4; held++) await page.keyboard.down("Enter");
  await expect(page.getByTestId("sms-code")).toBeFocused();
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await expect(page.getByTestId("sms-fault")).toBeEmpty();
  const code = gateway.code();
  expect(code).toMatch(/^\d{6}$/);
  expect(gateway.messages).toMatchObject([{ scene: "login", params: { ttl: "5" } }]);
  await page.keyboard.type(code);
  await page.getByTestId("order").first().focus();
  await page.keyboard.press("Enter");
  expect(await digits(page)).toMatch(/^[1-9]\d{5}$/);

  expect(sent.map(({ path }) => path)).toEqual(["/api/sms/send", "/api/auth/sms-login"]);
  for (const { tenant, client } of sent) expect([tenant, client]).toEqual(["1", "web"]);
  expect(JSON.parse(sent[1]?.body ?? "")).toMatchObject({ mobile: `+86${NUMBER}`, code });

  // What stays behind names neither the number nor the code.
  const kept = await page.evaluate(() =>
    JSON.stringify([
      Object.entries(localStorage),
      Object.entries(sessionStorage),
      history.state,
      location.href,
    ]),
  );
  expect(kept).toContain("guidepost.sms.login.");
  for (const secret of [NUMBER, code]) expect(kept).not.toContain(secret);
  expect(venue.log()).not.toContain(code);
  expect(venue.log()).not.toContain(NUMBER);
  const session = (await context.cookies()).filter(
    (cookie) => cookie.sameSite === "Strict" && cookie.httpOnly,
  );
  expect(session.length).toBeGreaterThan(0);
  await page.reload();
  expect(await digits(page)).toMatch(/^[1-9]\d{5}$/);
});

test("the countdown survives a reload, and belongs to its number", async ({ page, venue, gateway }) => {
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  await expect.poll(() => secondsLeft(page)).toBeGreaterThan(50);
  const before = await secondsLeft(page);
  await page.reload();
  await expect(page.getByTestId("sms-send")).toHaveText("获取验证码");
  await page.getByTestId("mobile").fill("１３８ 0000 0001");
  await expect.poll(() => secondsLeft(page)).toBeGreaterThan(30);
  expect(await secondsLeft(page)).toBeLessThanOrEqual(before);
  const posts: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") posts.push(request.url());
  });
  // Playwright would wait until the button may be pressed.
  await page.getByTestId("sms-send").click({ force: true });
  expect(posts).toEqual([]);
  await page.getByTestId("mobile").fill(ANOTHER);
  await expect(page.getByTestId("sms-send")).toHaveText("获取验证码");
  expect(gateway.messages.length).toBe(1);
});

test("the countdown is right after the tab slept", async ({ page, venue }) => {
  await page.clock.install();
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  await expect.poll(() => secondsLeft(page)).toBeGreaterThan(50);
  // Timers fire once at most, as in a tab that the browser had put to sleep.
  await page.clock.fastForward(40_000);
  await expect.poll(() => secondsLeft(page)).toBeLessThanOrEqual(20);
  await page.clock.fastForward(20_000);
  await expect(page.getByTestId("sms-send")).toHaveText("重新获取");
});

test("two tabs agree", async ({ page, venue, gateway, context }) => {
  const other = await context.newPage();
  for (const tab of [page, other]) {
    await tab.goto(venue.url);
    await tab.getByTestId("mobile").fill(NUMBER);
  }
  await page.getByTestId("sms-send").click();
  await expect.poll(() => secondsLeft(other)).toBeGreaterThan(30);
  expect(Math.abs((await secondsLeft(other)) - (await secondsLeft(page)))).toBeLessThanOrEqual(1);
  expect(gateway.messages.length).toBe(1);
});

test("a tab that knows nothing of the other takes the wait over from the server", async ({
  page,
  venue,
  gateway,
  browser,
}) => {
  const stranger = await browser.newPage({ locale: "zh-CN" });
  for (const tab of [page, stranger]) {
    await tab.goto(venue.url);
    await askFor(tab, NUMBER);
    await expect.poll(() => secondsLeft(tab)).toBeGreaterThan(30);
  }
  await expect(stranger.getByTestId("sms-message")).toHaveText("发送过于频繁，请稍后再试");
  expect(gateway.messages.length).toBe(1);
  await stranger.close();
});

test("a wrong code gives focus and selection back, the right one goes in, and all of it is said", async ({
  page,
  venue,
  gateway,
}) => {
  const heard = await listen(page);
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  const field = page.getByTestId("sms-code");
  await expect(field).toBeFocused();
  await field.fill("48a");
  await expect(page.getByTestId("sms-fault")).toHaveText("验证码是 6 位数字");
  const code = gateway.code();
  await field.fill(wrong(code));
  await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 4 次");
  await expect(field).toBeFocused();
  const selected = await field.evaluate((input: HTMLInputElement) => [
    input.selectionStart,
    input.selectionEnd,
  ]);
  expect(selected).toEqual([0, 6]);
  expect(await heard()).toEqual([
    "正在发送",
    "已发送，5 分钟内有效，以最新一条短信为准",
    "验证码是 6 位数字",
    "正在核对验证码",
    "验证码不正确，还可以再试 4 次",
  ]);
  // Over the selection, in full width and with a space, as an input method may give it.
  await page.keyboard.insertText(` ${code.replace(/\d/g, (d) => String.fromCharCode(0xff10 + Number(d)))}`);
  await expect(page.getByTestId("order").first()).toBeVisible();
});

/** As an input method for Chinese writes digits. */
const inFullWidth = (text: string) =>
  text.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));

test("a wrong code by an input method costs one try", async ({ page, venue, gateway, context }) => {
  const tried: string[] = [];
  page.on("request", (request) => {
    if (!request.url().endsWith("/sms-login")) return;
    tried.push((JSON.parse(request.postData() ?? "{}") as { code: string }).code);
  });
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  const field = page.getByTestId("sms-code");
  await expect(field).toBeFocused();
  const not = wrong(gateway.code());
  const composed = inFullWidth(not);
  const devtools = await context.newCDPSession(page);
  for (let length = 1; length <= 6; length++) {
    const text = composed.slice(0, length);
    await devtools.send("Input.imeSetComposition", { text, selectionStart: length, selectionEnd: length });
  }
  await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 4 次");
  await devtools.send("Input.insertText", { text: composed });
  await expect(field).toHaveValue(not);
  await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 4 次");
  expect(tried).toEqual([not]);
  // Who asks for it has it tried again.
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 3 次");
  expect(tried).toEqual([not, not]);
  await field.fill(gateway.code());
  await expect(page.getByTestId("order").first()).toBeVisible();
});

test("a code that is half composed is shown clean while and after it is checked", async ({
  page,
  venue,
  gateway,
  context,
}) => {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  await page.route("**/sms-login", async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  const field = page.getByTestId("sms-code");
  await expect(field).toBeFocused();
  const not = wrong(gateway.code());
  await page.keyboard.type(not.slice(0, 3));
  const devtools = await context.newCDPSession(page);
  const text = inFullWidth(not.slice(3));
  await devtools.send("Input.imeSetComposition", { text, selectionStart: 3, selectionEnd: 3 });
  await expect(page.getByTestId("sms-message")).toHaveText("正在核对验证码");
  await devtools.send("Input.insertText", { text });
  letGo();
  await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 4 次");
  await expect(field).toHaveValue(not);
});

test("a code that is being checked says so, and for how long", async ({ page, venue, gateway }) => {
  await page.clock.install();
  await page.route("**/sms-login", () => undefined);
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  await expect(page.getByTestId("sms-code")).toBeFocused();
  await page.getByTestId("sms-code").fill(gateway.code());
  await expect(page.getByTestId("sms-message")).toHaveText("正在核对验证码");
  await page.clock.fastForward(12_000);
  await expect(page.getByTestId("sms-message")).toHaveText(/^正在核对验证码，已等待 1\d 秒$/);
  expect(await faults(page)).toEqual([]);
});

test("a code that comes faster than the answer to its send stays", async ({ page, venue, gateway }) => {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  await page.route("**/sms/send", async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  await expect.poll(() => gateway.messages.length).toBe(1);
  await page.getByTestId("sms-code").fill(gateway.code().slice(0, 4));
  letGo();
  await expect(page.getByTestId("sms-message")).toContainText("已发送");
  await page.keyboard.type(gateway.code().slice(4));
  await expect(page.getByTestId("order").first()).toBeVisible();
});

test("text at twice its size leaves room for the code", async ({ page, venue }) => {
  await page.setViewportSize({ width: 320, height: 640 });
  await page.goto(venue.url);
  for (const locale of ["zh-CN", "en"]) {
    await expect(page.locator("html")).toHaveAttribute("lang", locale);
    await page.evaluate(() => {
      document.documentElement.style.fontSize = "200%";
    });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    const box = await page.getByTestId("sms-code").boundingBox();
    expect(box?.width).toBeGreaterThan(200);
    await page.getByTestId("language").click();
  }
});

test("a message that no channel took has counted, and may be asked for again at once", async ({
  page,
  venue,
  gateway,
}) => {
  gateway.status = 403;
  await page.goto(venue.url);
  await askFor(page, NUMBER);
  await expect(page.getByTestId("sms-message")).toHaveText(
    "短信没有发出，可以马上再试；本次尝试已计入今日次数",
  );
  gateway.status = 200;
  await page.getByTestId("sms-send").click();
  await expect.poll(() => secondsLeft(page)).toBeGreaterThan(30);
  await page.getByTestId("sms-code").fill(gateway.code());
  await expect(page.getByTestId("order").first()).toBeVisible();
});

test("a number without bookings is told so, and leads back to the number", async ({
  page,
  venue,
  gateway,
}) => {
  await page.goto(venue.url);
  await askFor(page, "13800009999");
  await expect(page.getByTestId("sms-code")).toBeFocused();
  await page.keyboard.type(gateway.code());
  await expect(page.getByTestId("plain")).toHaveText("没有订单");
  await page.getByTestId("another").click();
  await expect(page.getByTestId("plain")).toHaveText("请登录");
  await page.reload();
  await expect(page.getByTestId("plain"), "the session has ended on the server too").toHaveText("请登录");
  await askFor(page, NUMBER);
  await expect(page.getByTestId("sms-code")).toBeFocused();
  await page.keyboard.type(gateway.code());
  await expect(page.getByTestId("order").first()).toBeVisible();
});

test.describe("with a channel that speaks", () => {
  test.use({ voice: true, settings: { GUIDEPOST_SMS__SCENES__LOGIN__COOLDOWN: "2" } });

  test("who gets no message can be called", async ({ page, venue, gateway }) => {
    await page.goto(venue.url);
    await askFor(page, NUMBER);
    await expect(page.getByTestId("sms-voice")).toHaveText("没收到短信？改用语音播报");
    await page.getByTestId("sms-voice").click();
    await expect(page.getByTestId("sms-message")).toHaveText(
      "即将来电播报验证码，5 分钟内有效，以最新的验证码为准",
    );
    expect(gateway.messages.map(({ path }) => path)).toEqual(["/sms", "/sms/calls"]);
    await page.getByTestId("sms-code").fill(gateway.code());
    await expect(page.getByTestId("order").first()).toBeVisible();
  });
});

test.describe("with a captcha from the second send of an address on", () => {
  test.use({ settings: { GUIDEPOST_LIMITS__SMS__CAPTCHA_AFTER: "1" } });

  test("it appears then and only then, and loads nothing from elsewhere", async ({
    page,
    venue,
    gateway,
  }) => {
    const asked: { origin: string; path: string; body: string | null }[] = [];
    page.on("request", (request) => {
      const { origin, pathname } = new URL(request.url());
      asked.push({ origin, path: pathname, body: request.postData() });
    });
    const states: string[] = [];
    await page.exposeFunction("seen", (state: string) => states.push(state));
    await page.addInitScript(() => {
      new MutationObserver(() => {
        const state = document.querySelector<HTMLElement>("[data-testid=sms]")?.dataset.state ?? "";
        (window as unknown as { seen: (state: string) => void }).seen(state);
      }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });
    });
    await page.goto(venue.url);
    await askFor(page, NUMBER);
    await expect.poll(() => secondsLeft(page)).toBeGreaterThan(30);
    expect(states).not.toContain("proving");
    expect(asked.filter(({ path }) => path === "/api/captcha")).toEqual([]);

    await askFor(page, ANOTHER);
    await expect.poll(() => secondsLeft(page), { timeout: 30_000 }).toBeGreaterThan(20);
    expect(states).toContain("proving");
    const bodies = asked.flatMap(({ path, body }) =>
      path === "/api/sms/send" && body !== null ? [JSON.parse(body) as { captchaToken?: string }] : [],
    );
    expect(bodies.map(({ captchaToken }) => captchaToken !== undefined)).toEqual([false, false, true]);
    expect(asked.filter(({ path }) => path === "/api/captcha").length).toBe(1);
    expect(new Set(asked.map(({ origin }) => origin))).toEqual(new Set([new URL(venue.url).origin]));
    expect(gateway.messages.length).toBe(2);
    await page.getByTestId("sms-code").fill(gateway.code());
    await expect(page.getByTestId("order").first()).toBeVisible();
  });
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`nothing to stumble over and nothing out of the picture, ${colorScheme}`, async ({ page, venue }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width: 320, height: 568 });
    await page.goto(venue.url);
    for (const locale of ["zh-CN", "en"]) {
      await expect(page.locator("html")).toHaveAttribute("lang", locale);
      expect(await faults(page)).toEqual([]);
      await page.getByTestId("mobile").fill("1380000");
      await page.getByTestId("sms-send").click();
      await page.getByTestId("sms-code").fill("48a");
      expect(await faults(page)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
      await page.getByTestId("language").click();
    }
  });
}
