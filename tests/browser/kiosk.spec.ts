// The kiosk's screens in a browser, the shell played: what each state shows, and by hand by touch, keys and input method.
import type { Page } from "@playwright/test";
import type { CommandError, KioskEvent } from "../../ui/kiosk/host";
import type { Shell } from "../../ui/kiosk/host-browser";
import { faults } from "./accessibility";
import { expect, test } from "./kiosk-server";

declare global {
  interface Window {
    shell?: Shell;
  }
}

const emit = (page: Page, event: KioskEvent) =>
  page.evaluate((one) => {
    window.shell?.emit(one);
  }, event);
const calls = (page: Page) => page.evaluate(() => window.shell?.calls ?? []);
const refuseNext = (page: Page, command: string, error: CommandError) =>
  page.evaluate(
    ([name, why]) => {
      window.shell?.refuseNext(name, why);
    },
    [command, error] as const,
  );
const kiosk = (page: Page) => page.getByTestId("kiosk");
const boxes = (page: Page) => page.getByTestId("code-box").allInnerTexts();

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect(page.getByTestId("preview")).toHaveAttribute("data-drawn", "true");
}

test.beforeEach(async ({ page }) => {
  // The app's web view freezes it (`freezePrototype`); what minds that must fail here already.
  await page.addInitScript(() => {
    Object.freeze(Object.prototype);
  });
  page.on("pageerror", (error) => {
    throw error;
  });
});

const orderNo = "BK202608010009";
const NINE_41 = Date.UTC(2026, 7, 1, 1, 41);
const outcome = (one: Extract<KioskEvent, { type: "outcome" }>["outcome"]): KioskEvent => ({
  type: "outcome",
  outcome: one,
});
const ADMITTED = outcome({
  kind: "admitted",
  orderNo,
  visitorName: "周晓明",
  partySize: 12,
  visitAt: NINE_41,
  taskNo: "T20260801B",
  consumedAt: NINE_41,
  momentAgo: false,
});

/** Each answer: its events, its words in both languages, whether a touch leaves it. */
const ANSWERS: [string, KioskEvent[], string, string, boolean][] = [
  ["admitted", [ADMITTED], "12 人", "12 people", false],
  [
    "already_redeemed",
    [
      outcome({
        kind: "already_redeemed",
        orderNo,
        consumedAt: NINE_41,
        consumedBy: "陈晓",
        device: "东门一号",
      }),
    ],
    "已核销 09:41",
    "Redeemed 09:41",
    true,
  ],
  [
    "wrong_status",
    [outcome({ kind: "wrong_status", orderNo, status: "refunding" })],
    "退款中",
    "Refund under way",
    true,
  ],
  ["not_valid", [outcome({ kind: "not_valid", orderNo })], "请刷新核销码", "Refresh the code", true],
  ["not_yours", [outcome({ kind: "not_yours", orderNo })], "不在您的任务中", "Not in your tasks", true],
  ["foreign", [outcome({ kind: "foreign" })], "这不是核销码", "Not one of our codes", true],
  ["too_many", [outcome({ kind: "too_many", retryAfter: 300 })], "5:00", "5:00", true],
  ["frozen", [outcome({ kind: "frozen" })], "账号已被冻结", "Account frozen", true],
  [
    "cannot_check",
    [{ type: "link", away: "network" }, outcome({ kind: "cannot_check", orderNo, away: "network" })],
    "暂时无法核对",
    "Cannot check now",
    false,
  ],
  [
    "out_of_order",
    [{ type: "source", health: { name: "HD Pro Webcam", state: "lost" } }],
    "摄像头断开了",
    "Camera unplugged",
    false,
  ],
];

const SIZES = [
  { width: 1280, height: 800 },
  { width: 800, height: 1280 },
  { width: 1920, height: 1080 },
];

for (const locale of ["zh-CN", "en"] as const) {
  for (const size of SIZES) {
    test(`every answer is big and whole at ${size.width}x${size.height}, ${locale}`, async ({
      page,
      kioskUrl,
    }) => {
      test.setTimeout(90_000);
      await page.setViewportSize(size);
      // Time stands still, or the answers would leave while they are looked at.
      await page.clock.install();
      await page.goto(`${kioskUrl}?locale=${locale}`);
      await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
      await page.clock.pauseAt(Date.now() + 60_000);
      for (const [kind, events, chinese, english] of ANSWERS) {
        for (const event of events) await emit(page, event);
        await expect(kiosk(page)).toHaveAttribute("data-state", kind);
        const big = page.getByTestId("answer-text");
        await expect(big).toHaveText(locale === "en" ? english : chinese);
        const fontSize = await big.evaluate((element) => parseFloat(getComputedStyle(element).fontSize));
        expect(fontSize, kind).toBeGreaterThanOrEqual(120);
        // Nothing sticks out, neither of the screen nor of what it stands in.
        const out = await page.getByTestId("answer").evaluate((root) => {
          const frame = root.getBoundingClientRect();
          return [...root.querySelectorAll("svg, h1, dd, dt, p")]
            .filter((element) => {
              const box = element.getBoundingClientRect();
              const inside =
                box.left >= frame.left - 1 &&
                box.right <= frame.right + 1 &&
                box.top >= frame.top - 1 &&
                box.bottom <= frame.bottom + 1;
              return !inside || element.scrollWidth > element.clientWidth + 1;
            })
            .map((element) => element.outerHTML);
        });
        expect(out, kind).toEqual([]);
        await expect(page.getByTestId("said")).not.toBeEmpty();
        if (kind === "cannot_check") await emit(page, { type: "link", away: null });
      }
    });
  }
}

test("answers leave by themselves, and the next code wins at once", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await emit(page, outcome({ kind: "foreign" }));
  await expect(kiosk(page)).toHaveAttribute("data-state", "foreign");
  await emit(page, { type: "reading", orderTail: "010009", entry: "scan" });
  await expect(kiosk(page)).toHaveAttribute("data-state", "reading");
  await expect(page.getByTestId("reading-tail")).toHaveText("010009");
  await emit(page, ADMITTED);
  await expect(page.getByTestId("answer-name")).toHaveText("周晓明");
  await expect(page.getByTestId("answer-task")).toHaveText("其他任务：书画馆 · 下午场 · 09:41");
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready", { timeout: 10_000 });
  await expect(page.getByTestId("recent").getByRole("listitem")).toHaveText([/09:41\s*周晓明\s*12 人/]);
});

test("a touch or a key leaves an answer that may be left, and no other", async ({ page, kioskUrl }) => {
  await page.clock.install();
  await page.goto(kioskUrl);
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
  await page.clock.pauseAt(Date.now() + 60_000);
  for (const [kind, events, , , leaves] of ANSWERS.filter(([kind]) => kind !== "out_of_order")) {
    for (const way of ["touch", "key"] as const) {
      for (const event of events) await emit(page, event);
      await expect(kiosk(page)).toHaveAttribute("data-state", kind);
      if (way === "touch") await page.mouse.click(400, 300);
      else await page.keyboard.press("Escape");
      await expect(kiosk(page)).toHaveAttribute("data-state", leaves ? "ready" : kind);
      await emit(page, { type: "link", away: null });
    }
  }
});

test("too many attempts count down and end at zero", async ({ page, kioskUrl }) => {
  await page.clock.install();
  await page.goto(kioskUrl);
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
  await emit(page, outcome({ kind: "too_many", retryAfter: 30 }));
  await page.clock.runFor(10_000);
  await expect(page.getByTestId("answer-text")).toHaveText(/^(20|19)$/);
  await page.clock.runFor(21_000);
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
});

test("at rest: task, progress, guide, venue's time, health", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await expect(page.getByTestId("task")).toContainText("青铜器馆 · 上午场");
  await expect(page.getByTestId("task")).toContainText("09:00–11:00");
  await expect(page.getByTestId("progress")).toHaveAttribute("data-consumed", "8");
  await expect(page.getByTestId("progress")).toHaveAccessibleName("已入场 8 组，共 12 组");
  await expect(page.getByTestId("guide")).toHaveText("陈晓");
  await expect(page.getByTestId("clock")).toHaveText(/^09:4[1-5]$/);
  await expect(page.getByTestId("health-network")).toHaveAttribute("data-health", "good");
  await emit(page, { type: "source", health: { name: "HD Pro Webcam", state: "stalled" } });
  await expect(page.getByTestId("health-source")).toHaveAttribute("data-health", "bad");
  await expect(page.getByTestId("answer-what")).toHaveText("请拔下摄像头，再重新插上");
  await page.getByTestId("task").click();
  await page.getByTestId("task-item").nth(1).click();
  await expect(page.getByTestId("task")).toContainText("书画馆");
});

test("by hand with a finger: pick, six keys, redeem; the progress moves", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "by_hand");
  await page.getByTestId("key-0").click();
  await page.getByTestId("key-9").click();
  const items = page.getByTestId("order-item");
  await expect(items).toHaveCount(1);
  await items.click();
  await expect(page.getByTestId("chosen-order")).toHaveAttribute("data-order", orderNo);
  for (const digit of "4839219") await page.getByTestId(`key-${digit}`).click();
  await expect(page.getByTestId("code-fault")).toHaveText("核销码必须是首位非 0 的 6 位数字");
  await page.getByTestId("key-backspace").click();
  await expect(page.getByTestId("code-fault")).toHaveText("");
  expect(await boxes(page)).toEqual(["4", "8", "3", "9", "2", "1"]);
  await page.getByTestId("key-clear").click();
  for (const digit of "483921") await page.getByTestId(`key-${digit}`).click();
  await page.getByTestId("submit").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "admitted");
  await expect(page.getByTestId("answer-text")).toHaveText("8 人");
  expect(await calls(page)).toContain(`redeem_by_hand ${orderNo}`);
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready", { timeout: 10_000 });
});

test("by hand with a keyboard alone", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").focus();
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("order-search")).toBeFocused();
  await page.keyboard.type("bk202608010010");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("code-field")).toBeFocused();
  await page.keyboard.type("111111");
  await page.keyboard.press("Enter");
  await expect(kiosk(page)).toHaveAttribute("data-state", "not_valid");
  await page.keyboard.press("Escape");
  await expect(kiosk(page)).toHaveAttribute("data-state", "by_hand");
  await expect(page.getByTestId("code-field")).toHaveValue("");
  await expect(page.getByTestId("code-field")).toBeFocused();
  await page.keyboard.type("483921");
  await page.keyboard.press("Enter");
  await expect(kiosk(page)).toHaveAttribute("data-state", "admitted");
});

test("an input method's full-width digits count, while it is composing too", async ({
  page,
  kioskUrl,
  context,
}) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").click();
  await page.getByTestId("order-item").first().click();
  await expect(page.getByTestId("code-field")).toBeFocused();
  const keyboard = await context.newCDPSession(page);
  const compose = (text: string) =>
    keyboard.send("Input.imeSetComposition", {
      text,
      selectionStart: text.length,
      selectionEnd: text.length,
    });
  await compose("４８");
  await expect.poll(() => boxes(page)).toEqual(["4", "8", "", "", "", ""]);
  await compose("４８３９２１");
  await expect.poll(() => boxes(page)).toEqual(["4", "8", "3", "9", "2", "1"]);
  await keyboard.send("Input.insertText", { text: "４８３９２１" });
  await expect.poll(() => boxes(page)).toEqual(["4", "8", "3", "9", "2", "1"]);
  await expect(page.getByTestId("code-fault")).toHaveText("");
  await page.getByTestId("submit").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "admitted");
});

test("a paste is cleaned before its length is looked at; what is no digit is refused in sight", async ({
  page,
  kioskUrl,
}) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").click();
  await page.getByTestId("order-item").first().click();
  const field = page.getByTestId("code-field");
  await expect(field).toBeFocused();
  await page.keyboard.insertText("\ufeff \u200b483\u00a0921 \u200b");
  expect(await boxes(page)).toEqual(["4", "8", "3", "9", "2", "1"]);
  await expect(page.getByTestId("code-fault")).toHaveText("");
  await field.fill("");
  await page.keyboard.insertText("483-921");
  await expect(page.getByTestId("code-fault")).toHaveText("核销码必须是首位非 0 的 6 位数字");
  expect(await boxes(page)).toEqual(["4", "8", "3", "-", "9", "2"]);
  await page.getByTestId("submit").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "by_hand");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  expect((await calls(page)).filter((call) => call.startsWith("redeem_by_hand"))).toEqual([]);
});

test("an order that is in no list is typed, letters and all, with a finger", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").click();
  await page.getByTestId("submit").click();
  await expect(page.getByTestId("order-fault")).toHaveText("请先选择订单");
  await page.getByTestId("key-letters").click();
  for (const letter of "VIP-") await page.getByTestId(`key-${letter}`).click();
  await page.getByTestId("key-letters").click();
  await page.getByTestId("key-7").click();
  await page.getByTestId("order-typed").click();
  await expect(page.getByTestId("chosen-order")).toHaveAttribute("data-order", "VIP-7");
  for (const digit of "483921") await page.getByTestId(`key-${digit}`).click();
  await page.getByTestId("submit").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "not_yours");
});

test("the shell's refusal stands under the field", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("by-hand").click();
  await page.getByTestId("order-item").first().click();
  await page.getByTestId("code-field").fill("483921");
  await refuseNext(page, "redeem_by_hand", { kind: "in_flight" });
  await page.getByTestId("submit").click();
  await expect(page.getByTestId("code-fault")).toHaveText("上一次核对还没有结束，请稍候");
  await page.getByTestId("submit").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "admitted");
});

for (const size of SIZES) {
  test(`keys are big enough for fingers at ${size.width}x${size.height}`, async ({ page, kioskUrl }) => {
    await page.setViewportSize(size);
    await open(page, kioskUrl);
    await page.getByTestId("by-hand").click();
    for (const letters of [false, true]) {
      if (letters) await page.getByTestId("key-letters").click();
      const keys = await page.locator(".key").all();
      expect(keys.length).toBeGreaterThan(11);
      for (const key of keys) {
        const box = await key.boundingBox();
        expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(80);
        await expect(key).toBeInViewport({ ratio: 1 });
      }
    }
  });
}

test("by hand works while the camera is out of order, and closes when nobody touches it", async ({
  page,
  kioskUrl,
}) => {
  await page.clock.install();
  await page.goto(kioskUrl);
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
  await emit(page, { type: "source", health: { name: "HD Pro Webcam", state: "no_camera" } });
  await expect(kiosk(page)).toHaveAttribute("data-state", "out_of_order");
  await page.getByTestId("by-hand").click();
  await page.getByTestId("order-item").first().click();
  await page.getByTestId("code-field").fill("483921");
  await page.clock.runFor(58_000);
  await expect(kiosk(page)).toHaveAttribute("data-state", "by_hand");
  await page.mouse.click(20, 700);
  await page.clock.runFor(58_000);
  await expect(kiosk(page)).toHaveAttribute("data-state", "by_hand");
  await page.clock.runFor(3_000);
  await expect(kiosk(page)).toHaveAttribute("data-state", "out_of_order");
  await page.getByTestId("by-hand").click();
  await expect(page.getByTestId("code-field")).toHaveValue("");
});

test("a code that is read goes over whatever is open", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("settings-open").click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await emit(page, { type: "reading", orderTail: "010009", entry: "scan" });
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await emit(page, ADMITTED);
  await expect(page.getByTestId("answer-text")).toBeVisible();
});

test("settings: language, mirror, camera, pictures from a folder", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  const preview = page.getByTestId("preview");
  await expect(preview).toHaveClass(/mirrored/);
  await page.getByTestId("settings-open").click();
  await page.getByTestId("setting-mirrored").click();
  await expect(preview).not.toHaveClass(/mirrored/);
  await page.getByTestId("source-camera").nth(1).click();
  await expect(page.getByTestId("source-camera").nth(1)).toHaveAttribute("aria-pressed", "true");
  await page.getByTestId("source-path-use").click();
  await expect(page.getByTestId("source-path-fault")).toHaveText("请输入文件夹路径");
  await page.getByTestId("source-path").fill("/pictures");
  await page.getByTestId("source-path-use").click();
  await expect(page.getByTestId("health-source")).toContainText("图片");
  await page.getByTestId("locale-en").click();
  await expect(page.getByRole("heading", { name: "Settings" })).toBeVisible();
  await page.getByTestId("panel-close").click();
  await expect(page.getByTestId("by-hand")).toHaveText("Enter by hand");
  await expect(page.locator("html")).toHaveAttribute("lang", "en");
});

test("signing out and in, with the faults in their place", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("settings-open").click();
  await page.getByTestId("sign-out").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "signed_out");
  await page.getByTestId("sign-in").click();
  await expect(page.getByTestId("sign-in-fault")).toHaveText("请粘贴登录链接");
  await page.getByTestId("sign-in-link").fill("http://h/#sign-in=T");
  await refuseNext(page, "sign_in", { kind: "away", away: "network" });
  await page.getByTestId("sign-in").click();
  await expect(page.getByTestId("sign-in-fault")).toHaveText("现在连不上服务器，请稍后再试");
  await page.getByTestId("sign-in").click();
  await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
});

test.describe("while nothing can be checked", () => {
  test.use({ hasTouch: true, viewport: { width: 1280, height: 800 } });

  test("a guide can sign out by touch, and is offered nothing that would not help", async ({
    page,
    kioskUrl,
  }) => {
    await open(page, kioskUrl);
    await emit(page, { type: "link", away: "network" });
    await expect(kiosk(page)).toHaveAttribute("data-state", "cannot_check");
    await expect(page.getByTestId("answer").getByRole("button")).toHaveText(["设置与退出登录"]);
    await page.getByTestId("cannot-check-settings").tap();
    expect(await faults(page)).toEqual([]);
    // What is inert is hit by no touch, so that one alone would not tell which of them is seen.
    const layer = async (css: string) =>
      Number(await page.locator(css).evaluate((one) => getComputedStyle(one).zIndex));
    expect(await layer(".veil")).toBeGreaterThan(await layer(".answer"));
    // Another thing is away now; the settings stay.
    await emit(page, { type: "link", away: "server" });
    await page.getByTestId("sign-out").tap();
    await expect(kiosk(page)).toHaveAttribute("data-state", "signed_out");
    expect(await calls(page)).toContain("sign_out");
    await expect(page.getByTestId("why-sign-in")).toHaveCount(0);
  });

  for (const [width, height] of [
    [1280, 800],
    [800, 1280],
    [800, 600],
  ] as const) {
    test(`the way out covers nothing on ${width}x${height}`, async ({ page, kioskUrl }) => {
      await page.setViewportSize({ width, height });
      await open(page, `${kioskUrl}?locale=en`);
      await emit(page, { type: "link", away: "network" });
      await emit(page, { type: "reading", orderTail: "010001", entry: "scan" });
      await emit(page, {
        type: "outcome",
        outcome: { kind: "cannot_check", orderNo, away: "network" },
      });
      const out = await page.getByTestId("cannot-check-settings").boundingBox();
      const others = await page.locator(".answer > .sign, .answer > h1, .answer dl > div").all();
      expect(others.length).toBeGreaterThan(3);
      for (const other of others) {
        const box = await other.boundingBox();
        const apart =
          !!out &&
          !!box &&
          (box.x + box.width <= out.x || box.y >= out.y + out.height || box.x >= out.x + out.width);
        expect(apart, JSON.stringify([out, box])).toBe(true);
      }
    });
  }

  test("a code that is read closes the settings", async ({ page, kioskUrl }) => {
    await open(page, kioskUrl);
    await emit(page, { type: "link", away: "network" });
    await page.getByTestId("cannot-check-settings").tap();
    await emit(page, ADMITTED);
    await expect(page.getByTestId("answer-text")).toHaveText("12 人");
    await expect(page.getByTestId("sign-out")).toHaveCount(0);
  });
});

test("who has to sign in again reads why", async ({ page, kioskUrl }) => {
  await page.goto(`${kioskUrl}?signed-out&no-demo&why=no_keyring`);
  await expect(page.getByTestId("why-sign-in")).toContainText("没有解锁或不可用，请登录；");
  expect(await faults(page)).toEqual([]);
  await open(page, `${kioskUrl}?no-demo`);
  await emit(page, { type: "session", guide: null, why: "ended" });
  await expect(page.getByTestId("why-sign-in")).toHaveText("登录已到期或被收回，请重新登录。");
});

/** Touches these keys of the keypad. */
async function keys(page: Page, digits: string): Promise<void> {
  for (const digit of digits) await page.getByTestId(`key-${digit}`).tap();
}

test.describe("signing in by number and code", () => {
  test.use({ hasTouch: true, viewport: { width: 1280, height: 800 } });

  test("by touch alone, with a captcha, a wrong code and a countdown that survives a reload", async ({
    page,
    kioskUrl,
  }) => {
    await page.goto(`${kioskUrl}?signed-out&no-demo&kept=keyring`);
    await keys(page, "13900000001");
    for (const key of await page.locator(".key, .sms-send, .log-in .field").all()) {
      const box = await key.boundingBox();
      expect(Math.min(box?.height ?? 0, box?.width ?? 0)).toBeGreaterThanOrEqual(80);
    }
    await refuseNext(page, "send_sms", { kind: "refused", code: 4007, message: "", data: null });
    await page.getByTestId("sms-send").tap();
    await expect(page.getByTestId("sms-message")).toContainText("已发送");
    expect(await calls(page)).toEqual(expect.arrayContaining(["send_sms", "captcha", "send_sms solved"]));
    await page.reload();
    await keys(page, "13900000001");
    await expect(page.getByTestId("sms-send")).toHaveText(/^\d+ 秒后重发$/);
    await page.getByTestId("sms-code").tap();
    await keys(page, "111111");
    await expect(page.getByTestId("sms-message")).toHaveText("验证码不正确，还可以再试 4 次");
    expect(await faults(page)).toEqual([]);
    await keys(page, "048392");
    await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
    await expect(page.getByTestId("kept-notice")).toHaveCount(0);
    // Neither number nor code is left behind in the page.
    const left = await page.evaluate(() =>
      JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)]),
    );
    expect(left).not.toMatch(/13900000001|048392/);
  });

  test("by the keyboard alone", async ({ page, kioskUrl }) => {
    await page.goto(`${kioskUrl}?signed-out&no-demo&locale=en`);
    await expect(page.getByTestId("mobile")).toBeFocused();
    await page.keyboard.type("13900000001");
    await page.keyboard.press("Enter");
    await expect(page.getByTestId("sms-send")).toBeFocused();
    // Held down: the button is pressed once, and no empty code is used.
    for (let held = 0; held < 4; held++) await page.keyboard.down("Enter");
    await expect(page.getByTestId("sms-code")).toBeFocused();
    await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await expect(page.getByTestId("sms-fault")).toBeEmpty();
    expect((await calls(page)).filter((call) => call.startsWith("send_sms"))).toHaveLength(1);
    await page.keyboard.type("048392");
    await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
  });

  test("a link is the second way", async ({ page, kioskUrl }) => {
    await page.goto(`${kioskUrl}?signed-out&no-demo`);
    await page.getByTestId("other-way").tap();
    await expect(page.getByTestId("sign-in-link")).toBeFocused();
    expect(await faults(page)).toEqual([]);
    await page.getByTestId("other-way").tap();
    await expect(page.getByTestId("mobile")).toBeVisible();
  });

  test("how long the sign-in lasts is said where it is not kept, and holds nothing up", async ({
    page,
    kioskUrl,
  }) => {
    for (const [kept, notice, setting] of [
      ["memory", "没有地方保存登录", "程序关闭后需要再次登录"],
      ["until_reboot", "重启后需要再次登录", "电脑重启后需要再次登录"],
    ] as const) {
      await open(page, `${kioskUrl}?no-demo&kept=${kept}`);
      await expect(page.getByTestId("kept-notice")).toContainText(notice);
      expect(await faults(page)).toEqual([]);
      await emit(page, ADMITTED);
      await expect(page.getByTestId("answer-text")).toHaveText("12 人");
      await expect(kiosk(page)).toHaveAttribute("data-state", "ready");
      await page.getByTestId("kept-noticed").tap();
      await expect(page.getByTestId("kept-notice")).toHaveCount(0);
      await page.getByTestId("settings-open").tap();
      await expect(page.getByTestId("kept")).toContainText(setting);
    }
  });

  for (const [width, height] of [
    [1280, 800],
    [1920, 1080],
    [800, 1280],
    [800, 600],
  ] as const) {
    test(`everything fits on ${width}x${height}`, async ({ page, kioskUrl }) => {
      await page.setViewportSize({ width, height });
      await page.goto(`${kioskUrl}?signed-out&no-demo&locale=en&why=no_keyring`);
      await keys(page, "13900000001");
      const long = "the longest of what is said there";
      await refuseNext(page, "send_sms", { kind: "refused", code: 4008, message: long, data: null });
      await page.getByTestId("sms-send").tap();
      await expect(page.getByTestId("sms-message")).not.toBeEmpty();
      const boxes = await page.locator(".log-in-fields, .keypad, .signed-out footer, .signed-out-why").all();
      const found = await Promise.all(boxes.map((one) => one.boundingBox()));
      for (const box of found) {
        expect(box?.x).toBeGreaterThanOrEqual(0);
        expect(box?.y).toBeGreaterThanOrEqual(0);
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
        expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(height);
      }
      const [why, fields, keypad, footer] = found;
      const apart = (a: typeof fields, b: typeof fields) =>
        !!a && !!b && (a.x + a.width <= b.x || a.y + a.height <= b.y);
      expect(apart(fields, keypad) && apart(keypad, footer) && apart(fields, footer)).toBe(true);
      expect(apart(why, fields) && apart(why, keypad)).toBe(true);
    });
  }
});

test("a visitor's page of the demo is one click away", async ({ page, kioskUrl }) => {
  await open(page, kioskUrl);
  await page.getByTestId("visitor-page").first().click();
  expect(await calls(page)).toContain(`open_visitor_page ${orderNo}`);
  await open(page, `${kioskUrl}?no-demo`);
  await expect(page.getByTestId("visitor-pages")).toHaveCount(0);
});

test("reduced motion is honoured", async ({ page, kioskUrl }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open(page, kioskUrl);
  const moves = await page.evaluate(
    () =>
      [...document.querySelectorAll("*")].filter((element) => {
        const { transitionDuration, animationName } = getComputedStyle(element);
        return transitionDuration !== "0s" || animationName !== "none";
      }).length,
  );
  expect(moves).toBe(0);
});

test("nothing to stumble over on any screen", async ({ page, kioskUrl }) => {
  test.setTimeout(120_000);
  await open(page, kioskUrl);
  expect(await faults(page)).toEqual([]);
  await page.getByTestId("settings-open").click();
  await expect(page.getByTestId("source-camera").first()).toBeVisible();
  expect(await faults(page)).toEqual([]);
  await page.getByTestId("panel-close").click();
  await page.getByTestId("by-hand").click();
  await page.getByTestId("order-item").first().click();
  await page.getByTestId("code-field").fill("12-");
  expect(await faults(page)).toEqual([]);
  await page.getByTestId("by-hand-close").click();
  for (const [kind, events] of ANSWERS) {
    // Said again and again, so that the answer does not leave while it is looked at.
    const again = await page.evaluate((all) => {
      const say = () => {
        for (const event of all) window.shell?.emit(event);
      };
      say();
      return window.setInterval(say, 300);
    }, events);
    await expect(kiosk(page)).toHaveAttribute("data-state", kind);
    expect(await faults(page), kind).toEqual([]);
    await page.evaluate((timer) => {
      window.clearInterval(timer);
    }, again);
    await emit(page, { type: "link", away: null });
  }
  await emit(page, { type: "session", guide: null });
  expect(await faults(page)).toEqual([]);
});

test("a built page in a bare browser says that it cannot redeem", async ({ page, builtKioskUrl }) => {
  await page.goto(`${builtKioskUrl}?host=demo`);
  await expect(page.getByRole("heading")).toHaveText("这里是核销台的画面");
  expect(await page.evaluate(() => window.shell)).toBeUndefined();
});
