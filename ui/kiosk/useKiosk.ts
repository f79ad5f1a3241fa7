// Runs the state machine: events in, timers, sounds, and the facts that the quiet parts of the screen show.
import { computed, onScopeDispose, ref, shallowRef } from "vue";
import type { Host, KioskInfo, Settings, SourceChoice, TaskView } from "./host";
import { commandError } from "./host";
import { parseOrderNo, parseVerifyCode } from "../shared/numbers";
import { play, soundOf } from "./sounds";
import { deadline, type Event, initial, type Kiosk, step } from "./state";

/** Progress and clock are asked for again so often, in milliseconds: other kiosks redeem too. */
const REFRESH = 20_000;

/** The task to show: the one that runs, else the next one, else the last. */
export function currentTask(tasks: readonly TaskView[], now: number): TaskView | null {
  const byStart = [...tasks].sort((a, b) => a.startsAt - b.startsAt);
  // Visitors come before the start, so the next task takes over when the one before has ended.
  return byStart.find((task) => now < task.endsAt) ?? byStart.at(-1) ?? null;
}

export interface KioskOptions {
  host: Host;
  /** Milliseconds of a clock that never jumps. */
  now?: () => number;
  /** This machine's wall clock. */
  wallClock?: () => number;
}

export function useKiosk(options: KioskOptions) {
  const { host, now = () => performance.now(), wallClock = () => Date.now() } = options;
  const kiosk = shallowRef<Kiosk>(initial(null));
  const info = shallowRef<KioskInfo | null>(null);
  const tasks = shallowRef<TaskView[]>([]);
  const chosenTask = ref<string | null>(null);
  const clock = ref(now());
  const startedAt = now();
  const startFailed = ref(false);

  let timer: ReturnType<typeof setTimeout> | undefined;
  let disposed = false;

  const serverNow = computed(() => {
    // The wall clock is read anew whenever `clock` has moved.
    const offset = info.value?.clockOffset ?? 0;
    return clock.value >= 0 ? wallClock() + offset : offset;
  });
  const task = computed(
    () =>
      tasks.value.find((one) => one.taskNo === chosenTask.value) ?? currentTask(tasks.value, serverNow.value),
  );

  function dispatch(event: Event): void {
    const before = kiosk.value;
    const after = step(before, event, now());
    if (after === before) {
      // A timer may fire a little before its time; without another one the screen would stand for ever.
      if (event.type === "time") arm();
      return;
    }
    kiosk.value = after;
    clock.value = now();
    if (before.screen === after.screen) return;
    if (event.type === "host" && info.value?.settings.sound) {
      const sound = soundOf(after.screen.kind);
      if (sound) play(sound);
    }
    arm();
    if (after.screen.kind === "admitted") void loadTasks();
  }

  /** Sets the timer for the moment at which the screen leaves by itself. */
  function arm(): void {
    clearTimeout(timer);
    const until = deadline(kiosk.value.screen);
    if (until === null) return;
    timer = setTimeout(
      () => {
        dispatch({ type: "time" });
      },
      Math.max(1, until - now()),
    );
  }

  async function loadTasks(): Promise<void> {
    if (kiosk.value.guide === null) {
      tasks.value = [];
      return;
    }
    try {
      tasks.value = await host.tasks();
    } catch {
      // The last numbers stand; the network's health is told where it belongs.
    }
  }

  async function loadInfo(): Promise<void> {
    const fresh = await host.info();
    info.value = fresh;
  }

  async function start(wait = 1_000): Promise<void> {
    try {
      const first = await host.info();
      // Known before anything is shown: otherwise the sign-in would flash up before the guide who is signed in.
      dispatch({
        type: "host",
        event: { type: "session", guide: first.guide ?? null, why: first.why ?? null },
      });
      info.value = first;
      await host.subscribe((event) => {
        const wasAway = kiosk.value.away !== null;
        dispatch({ type: "host", event });
        // Other kiosks went on meanwhile, and a session may have ended.
        if (event.type === "link" && wasAway && !event.away) void loadTasks();
        if (event.type === "session") {
          chosenTask.value = null;
          void loadTasks();
          loadInfo().catch(() => undefined);
        }
      });
      startFailed.value = false;
    } catch {
      startFailed.value = true;
      setTimeout(() => {
        if (!disposed) void start(Math.min(wait * 2, 10_000));
      }, wait);
    }
  }

  async function redeemByHand(knownOrders: readonly string[]): Promise<void> {
    const { screen } = kiosk.value;
    if (screen.kind !== "by_hand" || screen.sending) return;
    const orderNo = screen.orderNo ?? typedOrder(screen.search, knownOrders);
    if (typeof orderNo !== "string") {
      dispatch({ type: "by_hand_fault", fault: { field: "order", why: orderNo.why } });
      return;
    }
    const code = parseVerifyCode(screen.code);
    if (!code.ok) {
      dispatch({ type: "by_hand_fault", fault: { field: "code", why: code.why } });
      return;
    }
    dispatch({ type: "by_hand_sending" });
    try {
      await host.redeemByHand(orderNo, code.value);
      dispatch({ type: "by_hand_settled" });
    } catch (fault) {
      const error = commandError(fault);
      if (error.kind === "bad_field") {
        const field = error.field === "orderNo" ? "order" : "code";
        dispatch({ type: "by_hand_fault", fault: { field, why: error.empty ? "empty" : "ill_formed" } });
      } else {
        dispatch({ type: "by_hand_fault", fault: { field: "form", error } });
      }
    }
  }

  async function saveSettings(settings: Settings): Promise<void> {
    const before = info.value;
    if (!before) return;
    info.value = { ...before, settings };
    try {
      await host.saveSettings(settings);
    } catch (fault) {
      info.value = before;
      throw fault;
    }
  }

  async function chooseSource(choice: SourceChoice): Promise<void> {
    await host.chooseSource(choice);
    if (info.value) info.value = { ...info.value, settings: { ...info.value.settings, source: choice } };
  }

  const ticking = setInterval(() => {
    clock.value = now();
  }, 250);
  const refreshing = setInterval(() => {
    void loadTasks();
    loadInfo().catch(() => undefined);
  }, REFRESH);
  onScopeDispose(() => {
    disposed = true;
    clearTimeout(timer);
    clearInterval(ticking);
    clearInterval(refreshing);
  });

  void start();
  return {
    kiosk,
    info,
    tasks,
    task,
    chosenTask,
    clock,
    serverNow,
    startedAt,
    startFailed,
    dispatch,
    redeemByHand,
    saveSettings,
    chooseSource,
  };
}

/** The order that a typed text names, or why it names none. */
export function typedOrder(
  search: string,
  known: readonly string[],
): string | { why: "empty" | "ill_formed" | "pick_first" } {
  const typed = parseOrderNo(search);
  if (!typed.ok) return { why: typed.why === "empty" ? "pick_first" : typed.why };
  if (known.includes(typed.value)) return typed.value;
  // The last digits of an order in the list are a search, not a number of their own.
  return known.some((orderNo) => orderNo.includes(typed.value)) ? { why: "pick_first" } : typed.value;
}
