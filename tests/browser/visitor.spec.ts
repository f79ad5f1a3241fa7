// The visitor's page in a browser, on the real server.
import type { Page } from "@playwright/test";
import { faults } from "./accessibility";
import { digits, expect, readQr, test } from "./visitor-server";

/** Writes down what the page shows, each change in order. */
async function watch(page: Page): Promise<() => Promise<{ state: string; code: string; text: string }[]>> {
  await page.addInitScript(() => {
    const seen: { state: string; code: string; text: string }[] = [];
    Object.assign(window, { seen });
    new MutationObserver(() => {
      const root = document.querySelector<HTMLElement>("[data-testid=page]");
      const code = document.querySelector("[data-testid=digits]")?.textContent ?? "";
      const text = document.querySelector("[data-testid=refreshing]")?.textContent ?? "";
      const now = { state: root?.dataset.state ?? "", code: code.replace(/\s/g, ""), text };
      if (JSON.stringify(now) !== JSON.stringify(seen.at(-1))) seen.push(now);
    }).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  return () =>
    page.evaluate(
      () => (window as unknown as { seen: { state: string; code: string; text: string }[] }).seen,
    );
}

/** Tells the page that it is out of sight, or in sight again. */
async function setVisible(page: Page, visible: boolean): Promise<void> {
  await page.evaluate(
    (state) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
      document.dispatchEvent(new Event("visibilitychange"));
    },
    visible ? "visible" : "hidden",
  );
}

test.beforeEach(({ page }) => {
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) throw new Error(message.text());
  });
  page.on("pageerror", (error) => {
    throw error;
  });
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`digits and QR agree, dark on light on a ${colorScheme} phone`, async ({ page, venue, orderNo }) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(venue.linkOf(orderNo));
    const qr = page.getByTestId("qr");
    await expect(qr).toBeVisible();
    const read = await readQr(await qr.screenshot());
    const code = await digits(page);
    expect(code).toMatch(/^[1-9]\d{5}$/);
    expect(read.text).toBe(`{"type":"TEAM_BOOKING_VERIFY","orderNo":"${orderNo}","verifyCode":"${code}"}`);
    expect(read).toMatchObject({ ecLevel: "M", hasECI: false, isInverted: false, isMirrored: false });
    expect((await venue.redeem(orderNo, code)).code).toBe(0);
  });
}

test("the QR is read at every width, and is as wide as the phone lets it", async ({
  page,
  venue,
  orderNo,
}) => {
  await page.setViewportSize({ width: 320, height: 568 });
  await page.goto(venue.linkOf(orderNo));
  for (const [width, height] of [
    [320, 568],
    [390, 844],
    [844, 390],
    [1280, 800],
  ] as const) {
    await page.setViewportSize({ width, height });
    const qr = page.getByTestId("qr");
    const room = Math.min(width, height, 520);
    await expect.poll(async () => (await qr.boundingBox())?.width ?? 0).toBeGreaterThan(room * 0.8);
    expect((await readQr(await page.screenshot({ fullPage: true }))).text).toContain(await digits(page));
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    await expect(page.getByTestId("refresh")).toBeInViewport({ ratio: width > 1_000 ? 0 : 1 });
  }
});

test("a reload, another tab and the refresh button keep the code", async ({
  page,
  venue,
  orderNo,
  context,
}) => {
  await page.goto(venue.linkOf(orderNo));
  const code = await digits(page);
  await page.reload();
  expect(await digits(page)).toBe(code);
  const another = await context.newPage();
  await another.goto(`${venue.url}/?order=${orderNo}`);
  expect(await digits(another)).toBe(code);
  await page.getByTestId("refresh").click();
  await expect(page.getByTestId("refresh")).toHaveText("已是最新");
  expect(await digits(page)).toBe(code);
});

test("no code and no token in address, history, storage or log", async ({
  page,
  venue,
  orderNo,
  context,
}) => {
  const link = venue.linkOf(orderNo);
  const token = link.slice(link.indexOf("#sign-in=") + "#sign-in=".length);
  expect(token.length).toBeGreaterThan(20);
  const addresses: string[] = [];
  const posts: string[] = [];
  page.on("request", (request) => {
    addresses.push(request.url(), request.headers().referer ?? "");
    if (request.method() === "POST") posts.push(request.postData() ?? "");
  });
  await page.goto(link);
  const code = await digits(page);
  expect(page.url()).toBe(`${venue.url}/?order=${orderNo}`);
  expect(posts).toEqual([JSON.stringify({ token })]);
  const kept = await page.evaluate(async () => ({
    local: Object.entries(localStorage),
    session: Object.entries(sessionStorage),
    cookie: document.cookie,
    databases: await indexedDB.databases(),
    caches: await caches.keys(),
    state: history.state as unknown,
    length: history.length,
  }));
  expect(kept.databases).toEqual([]);
  expect(kept.caches).toEqual([]);
  for (const secret of [code, token]) {
    expect(JSON.stringify(kept)).not.toContain(secret);
    expect(addresses.join("\n")).not.toContain(secret);
  }
  expect(venue.log()).not.toContain(token);
  const cookies = await context.cookies();
  expect(cookies.map((cookie) => [cookie.httpOnly, cookie.sameSite])).toEqual([[true, "Strict"]]);
});

test("a sign-in link works once; opened again on the same phone it still shows the order", async ({
  page,
  venue,
  orderNo,
  browser,
}) => {
  const link = venue.linkOf(orderNo);
  await page.goto(link);
  const code = await digits(page);
  await page.goto("about:blank");
  await page.goto(link);
  expect(await digits(page)).toBe(code);
  const stranger = await browser.newPage({ locale: "zh-CN" });
  await stranger.goto(link);
  await expect(stranger.getByTestId("plain")).toHaveText("登录链接已失效");
  await expect(stranger.getByTestId("digits")).toHaveCount(0);
  await stranger.close();
});

test("without a session it says how to get in", async ({ page, venue, orderNo }) => {
  await page.goto(`${venue.url}/?order=${orderNo}`);
  await expect(page.getByTestId("plain")).toHaveText("请登录");
});

test("once redeemed it says so by itself, with the time, and shows no code", async ({
  page,
  venue,
  orderNo,
}) => {
  await page.goto(venue.linkOf(orderNo));
  const code = await digits(page);
  expect((await venue.redeem(orderNo, code)).code).toBe(0);
  const done = page.getByTestId("done");
  await expect(done).toBeVisible({ timeout: 10_000 });
  await expect(done).toHaveAttribute("data-status", "consumed");
  await expect(done.getByRole("heading")).toHaveText("已核销");
  await expect(page.getByTestId("consumed-at")).toHaveText(/\d{2}:\d{2}$/);
  await expect(page.getByTestId("digits")).toHaveCount(0);
  await expect(page.getByTestId("qr")).toHaveCount(0);
  await page.reload();
  await expect(done).toHaveAttribute("data-status", "consumed");
});

test("out of sight the code goes; back in sight the page asks again", async ({ page, venue, orderNo }) => {
  await page.goto(venue.linkOf(orderNo));
  const code = await digits(page);
  await setVisible(page, false);
  await expect(page.getByTestId("digits")).toHaveCount(0);
  await expect(page.getByTestId("qr")).toHaveCount(0);
  const asked = page.waitForRequest(/verify-code/);
  await setVisible(page, true);
  await asked;
  expect(await digits(page)).toBe(code);
});

test("several orders: choose one, and the back button leads back", async ({ page, venue, orderNo }) => {
  await page.goto(venue.linkOf(orderNo));
  await expect(page.getByTestId("digits")).toBeVisible();
  await page.goto(venue.url);
  const items = page.getByTestId("order");
  await expect(items).toHaveCount(2);
  await items.first().click();
  await expect(page.getByTestId("digits")).toBeVisible();
  expect(new URL(page.url()).searchParams.get("order")).toMatch(/^BK/);
  await page.goBack();
  await expect(items).toHaveCount(2);
  await page.goto(`${venue.url}/?order=NOSUCH`);
  await expect(page.getByTestId("plain")).toHaveText("没有找到此订单");
});

test("times are the venue's, in either language", async ({ page, venue, orderNo }) => {
  await page.goto(venue.linkOf(orderNo));
  await expect(page.getByTestId("visit-at")).toHaveText(/月\d+日.* 09:00$/);
  await page.getByTestId("language").click();
  await expect(page.getByTestId("visit-at")).toHaveText(/^[A-Z][a-z]{2} \d+ [A-Z][a-z]{2,3} 09:00$/);
  await expect(page.getByTestId("refresh")).toHaveText("Refresh");
  await page.reload();
  await expect(page.getByTestId("refresh")).toHaveText("Refresh");
  await expect(page.locator("html")).toHaveAttribute("lang", "en");
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`nothing to stumble over, ${colorScheme}`, async ({ page, venue, orderNo }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.goto(venue.linkOf(orderNo));
    await expect(page.getByTestId("digits")).toBeVisible();
    expect(await faults(page)).toEqual([]);
    await page.goto(venue.url);
    await expect(page.getByTestId("order").first()).toBeVisible();
    expect(await faults(page)).toEqual([]);
  });
}

test.describe("on an English phone", () => {
  test.use({ locale: "en-GB" });
  test("it speaks English", async ({ page, venue, orderNo }) => {
    await page.goto(venue.linkOf(orderNo));
    await expect(page.getByTestId("refresh")).toHaveText("Refresh");
  });
});

test.describe("with a short life", () => {
  test.use({ codeLife: 4 });

  test("at zero the old code is gone before the new one comes", async ({ page, venue, orderNo }) => {
    const seen = await watch(page);
    await page.goto(venue.linkOf(orderNo));
    const old = await digits(page);
    await expect
      .poll(async () => (await seen()).filter((one) => one.code !== "").length, { timeout: 20_000 })
      .toBeGreaterThan(1);
    const fresh = await digits(page);
    expect(fresh).not.toBe(old);
    const all = await seen();
    const lastOld = all.findLastIndex((one) => one.code === old);
    const firstFresh = all.findIndex((one) => one.code === fresh);
    const between = all.slice(lastOld + 1, firstFresh);
    expect(between.length).toBeGreaterThan(0);
    for (const one of between) expect(one).toEqual({ state: "code_refreshing", code: "", text: "正在刷新" });
    expect((await venue.redeem(orderNo, old)).code).toBe(2003);
  });

  test("the screen never shows a code that the server no longer takes", async ({ page, venue, orderNo }) => {
    // The phone's wall clock is a day slow; the countdown must not mind.
    await page.addInitScript(() => {
      const real = Date.now;
      Date.now = () => real() - 86_400_000;
    });
    await page.goto(venue.linkOf(orderNo));
    const old = await digits(page);
    await expect.poll(() => digits(page), { timeout: 15_000 }).not.toBe(old);
    const fresh = await digits(page);
    expect((await venue.redeem(orderNo, fresh)).code).toBe(0);
  });

  test("offline it says so and shows nothing old; back online it goes on by itself", async ({
    page,
    venue,
    orderNo,
    context,
  }) => {
    await page.goto(venue.linkOf(orderNo));
    await expect(page.getByTestId("digits")).toBeVisible();
    await context.setOffline(true);
    await expect(page.getByTestId("trouble")).toHaveText("网络已断开", { timeout: 15_000 });
    await expect(page.getByTestId("digits")).toHaveCount(0);
    await expect(page.getByTestId("qr")).toHaveCount(0);
    await context.setOffline(false);
    await expect(page.getByTestId("digits")).toBeVisible({ timeout: 20_000 });
  });

  test("a server that is away is said to be away", async ({ page, venue, orderNo }) => {
    await page.goto(venue.linkOf(orderNo));
    await expect(page.getByTestId("digits")).toBeVisible();
    await venue.stop();
    await expect(page.getByTestId("trouble")).toBeVisible({ timeout: 15_000 });
    await expect(page.getByTestId("digits")).toHaveCount(0);
  });
});
