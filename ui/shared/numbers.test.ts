// The cleaning of typed numbers, by the cases that the server's crate is tested with too.
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import {
  cleanDigits,
  inGroups,
  orderTail,
  parseMobile,
  parseOrderNo,
  parseSmsCode,
  parseVerifyCode,
} from "./numbers";

const CASES = resolve(import.meta.dirname, "../../../shared/cases/typed-codes.json");
const shared = existsSync(CASES);
if (!shared) process.stdout.write(`skipped: the shared cases of typed codes are not at ${CASES}\n`);

describe.skipIf(!shared)("the shared cases", () => {
  const cases = shared
    ? (JSON.parse(readFileSync(CASES, "utf8")) as { typed: string; expect: string; why: string }[])
    : [];
  it("are there", () => {
    expect(cases.length).toBeGreaterThan(10);
  });
  it.each(cases)("$why", ({ typed, expect: expected }) => {
    const parsed = parseVerifyCode(typed);
    if (expected === "error") expect(parsed.ok).toBe(false);
    else expect(parsed).toEqual({ ok: true, value: expected });
  });
});

describe("a verify code", () => {
  it("is taken in full width, with spaces, with zero-width characters", () => {
    for (const typed of [
      "483921",
      "４８３９２１",
      " 483\u2009921\r\n",
      "\ufeff4\u200b83\u2060921",
      "４８３ 921",
    ]) {
      expect(parseVerifyCode(typed)).toEqual({ ok: true, value: "483921" });
    }
  });

  it("says whether nothing or something wrong was typed", () => {
    expect(parseVerifyCode(" \u200b　")).toEqual({ ok: false, why: "empty" });
    for (const typed of ["083921", "48392", "4839210", "483-921", "٤٨٣٩٢١", "48392l"]) {
      expect(parseVerifyCode(typed)).toEqual({ ok: false, why: "ill_formed" });
    }
  });

  it("keeps what is no digit, so that it is refused in sight", () => {
    expect(cleanDigits("48-39 x")).toBe("48-39x");
  });

  it("is read out in two groups", () => {
    expect(inGroups("483921")).toEqual(["483", "921"]);
  });
});

describe("an order number", () => {
  it("is upper-cased and cleaned", () => {
    expect(parseOrderNo(" bk２０26_08-01 ")).toEqual({ ok: true, value: "BK2026_08-01" });
  });
  it("is refused with other characters, empty or too long", () => {
    expect(parseOrderNo("")).toEqual({ ok: false, why: "empty" });
    expect(parseOrderNo("BK/1").ok).toBe(false);
    expect(parseOrderNo("A".repeat(65)).ok).toBe(false);
  });
  it("is shown by its last six", () => {
    expect(orderTail("BK202608010001")).toBe("010001");
    expect(orderTail("A1")).toBe("A1");
  });
});

describe("an SMS code", () => {
  it("may begin with zeros and stays text", () => {
    expect(parseSmsCode("０００ 012")).toEqual({ ok: true, value: "000012" });
    expect(parseSmsCode("\u200b")).toEqual({ ok: false, why: "empty" });
    for (const typed of ["12345", "1234567", "12345l", "123-456"]) {
      expect(parseSmsCode(typed), typed).toEqual({ ok: false, why: "ill_formed" });
    }
  });
});

describe("a mobile number", () => {
  it("is one number however it is typed", () => {
    for (const typed of ["13800138000", "138 0013 8000", "１３８００１３８０００", "+86 138 0013 8000"]) {
      expect(parseMobile(typed), typed).toEqual({ ok: true, value: "+8613800138000" });
    }
    expect(parseMobile("+44 7911 123456")).toEqual({ ok: true, value: "+447911123456" });
  });

  it("is not any eleven digits", () => {
    expect(parseMobile("  ")).toEqual({ ok: false, why: "empty" });
    for (const typed of [
      "12800138000",
      "1380013800",
      "138001380001",
      "138-0013-8000",
      "+8612800138000",
      "+1",
    ]) {
      expect(parseMobile(typed), typed).toEqual({ ok: false, why: "ill_formed" });
    }
  });
});
