// The machine at work: timers, commands and what comes of them, with a played shell and fake time.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { effectScope, type EffectScope } from "vue";
import type { Host, KioskEvent, KioskInfo, TaskView } from "./host";
import { currentTask, typedOrder, useKiosk } from "./useKiosk";

const task = (taskNo: string, startsAt: number, endsAt: number): TaskView => ({
  taskNo,
  title: taskNo,
  venue: "",
  startsAt,
  endsAt,
  total: 12,
  paid: 4,
  consumed: 8,
});

const info: KioskInfo = {
  version: "1",
  server: "h",
  demo: false,
  guide: "陈晓",
  timezone: "Asia/Shanghai",
  clockOffset: 0,
  voice: false,
  settings: { locale: "zh-CN", mirrored: true, sound: false, source: null },
  visitorPages: [],
};

function shell() {
  let emit: (event: KioskEvent) => void = () => {
    throw new Error("nobody listens");
  };
  const host = {
    info: vi.fn<Host["info"]>(() => Promise.resolve(structuredClone(info))),
    subscribe: vi.fn<Host["subscribe"]>((on) => {
      emit = on;
      on({ type: "session", guide: "陈晓" });
      return Promise.resolve();
    }),
    tasks: vi.fn<Host["tasks"]>(() => Promise.resolve([task("T1", 0, 10)])),
    taskOrders: vi.fn<Host["taskOrders"]>(),
    redeemByHand: vi.fn<Host["redeemByHand"]>(() => Promise.resolve()),
    cameras: vi.fn<Host["cameras"]>(),
    chooseSource: vi.fn<Host["chooseSource"]>(() => Promise.resolve()),
    saveSettings: vi.fn<Host["saveSettings"]>(() => Promise.resolve()),
    signIn: vi.fn<Host["signIn"]>(),
    sendSms: vi.fn<Host["sendSms"]>(),
    captcha: vi.fn<Host["captcha"]>(),
    smsLogin: vi.fn<Host["smsLogin"]>(),
    signOut: vi.fn<Host["signOut"]>(),
    openVisitorPage: vi.fn<Host["openVisitorPage"]>(),
    nextPreview: vi.fn<Host["nextPreview"]>(),
  } satisfies Host;
  return {
    host,
    emit: (event: KioskEvent) => {
      emit(event);
    },
  };
}

let scope: EffectScope;
beforeEach(() => {
  vi.useFakeTimers();
  scope = effectScope();
});
afterEach(() => {
  scope.stop();
  vi.useRealTimers();
});

async function open(played = shell()) {
  const desk = scope.run(() => useKiosk({ host: played.host }));
  if (!desk) throw new Error("the scope has ended");
  await vi.advanceTimersByTimeAsync(0);
  return { ...played, desk };
}
const admitted: KioskEvent = {
  type: "outcome",
  outcome: {
    kind: "admitted",
    orderNo: "BK1",
    visitorName: "王芳",
    partySize: 2,
    visitAt: 0,
    taskNo: "T1",
    consumedAt: 0,
    momentAgo: false,
  },
};

it("an answer leaves by its timer, and the progress is asked for again", async () => {
  const { desk, emit, host } = await open();
  const asked = host.tasks.mock.calls.length;
  emit(admitted);
  expect(desk.kiosk.value.screen.kind).toBe("admitted");
  await vi.advanceTimersByTimeAsync(2_499);
  expect(desk.kiosk.value.screen.kind).toBe("admitted");
  await vi.advanceTimersByTimeAsync(1);
  expect(desk.kiosk.value.screen.kind).toBe("ready");
  expect(host.tasks.mock.calls.length).toBe(asked + 1);
});

it("once the server is back the progress is asked for again: a session may have ended meanwhile", async () => {
  const { emit, host } = await open();
  emit({ type: "link", away: "network" });
  const asked = host.tasks.mock.calls.length;
  emit({ type: "link", away: null });
  expect(host.tasks.mock.calls.length).toBe(asked + 1);
});

it("a timer that fires before its time is set again", async () => {
  const played = shell();
  // A clock that runs a little slower than the timers do.
  const now = () => performance.now() * 0.999;
  const desk = scope.run(() => useKiosk({ host: played.host, now }));
  if (!desk) throw new Error("the scope has ended");
  await vi.advanceTimersByTimeAsync(0);
  played.emit(admitted);
  await vi.advanceTimersByTimeAsync(2_501);
  expect(desk.kiosk.value.screen.kind).toBe("admitted");
  await vi.advanceTimersByTimeAsync(100);
  expect(desk.kiosk.value.screen.kind).toBe("ready");
});

it("who is signed in is known before anything is shown", async () => {
  const played = shell();
  let heard: (event: KioskEvent) => void = () => undefined;
  // The first event takes its time, as it does in the window.
  played.host.subscribe.mockImplementation((on) => {
    heard = on;
    return new Promise(() => undefined);
  });
  const { desk } = await open(played);
  expect(desk.info.value).not.toBeNull();
  expect(desk.kiosk.value).toMatchObject({ guide: "陈晓", screen: { kind: "ready" } });
  heard({ type: "session", guide: null, why: "ended" });
  expect(desk.kiosk.value).toMatchObject({ screen: { kind: "signed_out" }, why: "ended" });
});

it("why somebody has to sign in again is known from the start as well", async () => {
  const played = shell();
  played.host.info.mockResolvedValue({ ...structuredClone(info), guide: null, why: "no_keyring" });
  played.host.subscribe.mockResolvedValue();
  const { desk } = await open(played);
  expect(desk.kiosk.value).toMatchObject({ screen: { kind: "signed_out" }, why: "no_keyring" });
});

it("a shell that does not start is tried again", async () => {
  const played = shell();
  played.host.info.mockRejectedValueOnce({ kind: "internal" });
  const { desk } = await open(played);
  expect(desk.startFailed.value).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(desk.startFailed.value).toBe(false);
  expect(desk.kiosk.value.screen.kind).toBe("ready");
});

it("by hand cleans what was typed and sends it once", async () => {
  const { desk, host } = await open();
  desk.dispatch({ type: "by_hand_open" });
  desk.dispatch({ type: "by_hand_pick", orderNo: "BK1" });
  desk.dispatch({ type: "by_hand_code", text: " ４８３ 921" });
  await Promise.all([desk.redeemByHand([]), desk.redeemByHand([])]);
  expect(host.redeemByHand.mock.calls).toEqual([["BK1", "483921"]]);
});

it("by hand says which field is wrong, without asking the shell", async () => {
  const { desk, host } = await open();
  desk.dispatch({ type: "by_hand_open" });
  await desk.redeemByHand([]);
  expect(desk.kiosk.value.screen).toMatchObject({ fault: { field: "order", why: "pick_first" } });
  desk.dispatch({ type: "by_hand_pick", orderNo: "BK1" });
  await desk.redeemByHand([]);
  expect(desk.kiosk.value.screen).toMatchObject({ fault: { field: "code", why: "empty" } });
  desk.dispatch({ type: "by_hand_code", text: "12345x" });
  await desk.redeemByHand([]);
  expect(desk.kiosk.value.screen).toMatchObject({ fault: { field: "code", why: "ill_formed" } });
  expect(host.redeemByHand).not.toHaveBeenCalled();
});

it.each([
  [
    { kind: "bad_field", field: "orderNo", empty: false },
    { field: "order", why: "ill_formed" },
  ],
  [{ kind: "in_flight" }, { field: "form", error: { kind: "in_flight" } }],
  [
    { kind: "away", away: "network" },
    { field: "form", error: { kind: "away", away: "network" } },
  ],
  ["not an error of ours", { field: "form", error: { kind: "internal" } }],
])("a refused attempt (%o) is told in the form", async (error, fault) => {
  const { desk, host } = await open();
  host.redeemByHand.mockRejectedValue(error);
  desk.dispatch({ type: "by_hand_open" });
  desk.dispatch({ type: "by_hand_pick", orderNo: "BK1" });
  desk.dispatch({ type: "by_hand_code", text: "483921" });
  await desk.redeemByHand([]);
  expect(desk.kiosk.value.screen).toMatchObject({ kind: "by_hand", sending: false, fault });
});

it("settings that are not saved fall back", async () => {
  const { desk, host } = await open();
  host.saveSettings.mockRejectedValue({ kind: "internal" });
  await expect(desk.saveSettings({ ...info.settings, locale: "en" })).rejects.toEqual({ kind: "internal" });
  expect(desk.info.value?.settings.locale).toBe("zh-CN");
});

it("the task shown is the one that runs, else the next, else the last", () => {
  const tasks = [task("B", 100, 200), task("A", 0, 90), task("C", 300, 400)];
  expect([-5, 50, 95, 150, 250, 999].map((now) => currentTask(tasks, now)?.taskNo)).toEqual([
    "A",
    "A",
    "B",
    "B",
    "C",
    "C",
  ]);
  expect(currentTask([], 0)).toBeNull();
});

it("a typed text is an order's number only where it cannot be a search", () => {
  const known = ["BK0001", "BK0002"];
  expect(typedOrder(" bk0001", known)).toBe("BK0001");
  expect(typedOrder("0002", known)).toEqual({ why: "pick_first" });
  expect(typedOrder("BK0003", known)).toBe("BK0003");
  expect(typedOrder("", known)).toEqual({ why: "pick_first" });
  expect(typedOrder("王", known)).toEqual({ why: "ill_formed" });
});
