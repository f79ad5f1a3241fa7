// What the answers say.
import { describe as group, expect, it } from "vitest";
import { common, kiosk } from "../shared/i18n/zh-CN";
import * as en from "../shared/i18n/en";
import { makeWords } from "../shared/i18n";
import { VenueTime } from "../shared/time";
import { type AnswerContext, describe, step } from "./answer";
import { type Outcome, initial, step as stepState } from "./state";

const words = makeWords("zh-CN", {
  "zh-CN": { common, kiosk },
  en: { common: en.common, kiosk: en.kiosk },
});
const NINE_41 = Date.UTC(2026, 7, 1, 1, 41);
const context: AnswerContext = {
  t: words.t,
  venue: new VenueTime("Asia/Shanghai", "zh-CN"),
  serverNow: NINE_41 + 60_000,
  now: 0,
  tasks: [
    { taskNo: "T2", title: "书画馆", venue: "", startsAt: 0, endsAt: 0, total: 0, paid: 0, consumed: 0 },
  ],
  shownTask: "T1",
};
const answer = (outcome: Outcome, change: Partial<AnswerContext> = {}) => {
  const { screen } = stepState(initial("陈晓"), { type: "host", event: { type: "outcome", outcome } }, 0);
  const described = describe(screen, { ...context, ...change });
  if (!described) throw new Error(`${outcome.kind} is not described`);
  return { ...described, values: described.lines.map((line) => line.value) };
};
const admitted: Extract<Outcome, { kind: "admitted" }> = {
  kind: "admitted",
  orderNo: "BK202608010009",
  visitorName: "王芳",
  partySize: 12,
  visitAt: NINE_41,
  taskNo: "T1",
  consumedAt: NINE_41,
  momentAgo: false,
};

group("admitted", () => {
  it("says the party's size, the name, the order's last six and the time", () => {
    const said = answer(admitted);
    expect(said).toMatchObject({ big: "12 人", tone: "green", sign: "tick", say: "请进，12 人，王芳" });
    expect(said.values).toEqual(["王芳", "010009", "09:41"]);
  });
  it("names another task than the one shown", () => {
    expect(answer({ ...admitted, taskNo: "T2" }).values).toContain("其他任务：书画馆 · 09:41");
    expect(answer({ ...admitted, taskNo: "T7" }).values).toContain("其他任务：T7 · 09:41");
  });
  it("says that it was a moment ago", () => {
    expect(answer({ ...admitted, momentAgo: true }).values).toContain("刚刚已入场 · 09:41");
  });
  it("knows one person from several in English", () => {
    words.locale.value = "en";
    expect(answer({ ...admitted, partySize: 1 }).big).toBe("1 person");
    expect(answer(admitted).big).toBe("12 people");
    words.locale.value = "zh-CN";
  });
});

group("refusals", () => {
  it("already redeemed says when, by whom, where", () => {
    const outcome = {
      kind: "already_redeemed",
      orderNo: "BK1",
      consumedAt: NINE_41,
      consumedBy: "陈晓",
      device: "东门",
    } as const;
    expect(answer(outcome)).toMatchObject({ big: "已核销 09:41", tone: "amber", sign: "bar" });
    expect(answer(outcome).values).toEqual(["陈晓", "东门", "BK1"]);
    const before = answer(outcome, { serverNow: NINE_41 + 86_400_000 });
    expect(before.big).toMatch(/8月1日.*09:41/);
    expect(answer({ ...outcome, consumedAt: null, consumedBy: null, device: null }).big).toBe("已核销");
  });
  it.each([
    [{ kind: "wrong_status", orderNo: "BK1", status: "refunding" }, "退款中", "amber", "bar"],
    [{ kind: "not_valid", orderNo: "BK1" }, "请刷新核销码", "red", "cross"],
    [{ kind: "not_yours", orderNo: "BK1" }, "不在您的任务中", "red", "cross"],
    [{ kind: "foreign" }, "这不是核销码", "grey", "circle"],
    [{ kind: "frozen" }, "账号已被冻结", "red", "lock"],
    [{ kind: "cannot_check", orderNo: "BK1", away: "code_service" }, "暂时无法核对", "stripes", "away"],
  ] as const)("%o", (outcome, big, tone, sign) => {
    expect(answer(outcome)).toMatchObject({ big, tone, sign });
  });
  it("too many counts down", () => {
    expect(answer({ kind: "too_many", retryAfter: 42 }, { now: 0 }).big).toBe("42");
    expect(answer({ kind: "too_many", retryAfter: 42 }, { now: 40_500 }).big).toBe("2");
    expect(answer({ kind: "too_many", retryAfter: 600 }, { now: 0 }).big).toBe("10:00");
  });
  it("cannot check says what is away and that it is tried again", () => {
    const { values } = answer({ kind: "cannot_check", orderNo: "BK1", away: "network" });
    expect(values.slice(0, 2)).toEqual(["网络不通", "正在自动重试，恢复后继续"]);
  });
});

it("the step of the big line falls with its length", () => {
  expect(["42", "12 人", "请刷新核销码", "已核销 8月1日周六 09:41"].map(step)).toEqual([
    "xl",
    "xl",
    "m",
    "s",
  ]);
});
