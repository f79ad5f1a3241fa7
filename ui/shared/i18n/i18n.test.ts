// Both languages say the same things.
import { describe, expect, it } from "vitest";
import { pickLocale } from ".";
import * as en from "./en";
import * as zh from "./zh-CN";

function leaves(words: object, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(words) as [string, string | object][]) {
    const at = path === "" ? key : `${path}.${key}`;
    if (typeof value === "string") found.set(at, value);
    else for (const [inner, text] of leaves(value, at)) found.set(inner, text);
  }
  return found;
}

const placeholders = (text: string) => new Set(text.match(/\{\w+\}/g) ?? []);
const chinese = leaves({ common: zh.common, visitor: zh.visitor, kiosk: zh.kiosk });
const english = leaves({ common: en.common, visitor: en.visitor, kiosk: en.kiosk });

describe("the words", () => {
  it("have the same keys in both languages", () => {
    expect([...english.keys()].sort()).toEqual([...chinese.keys()].sort());
  });

  it("have the same values to fill in", () => {
    for (const [key, text] of chinese)
      expect(placeholders(english.get(key) ?? ""), key).toEqual(placeholders(text));
  });

  it("are never empty, and Chinese is Chinese and English is not", () => {
    const signs = new Set(["kiosk.byHand.letters", "kiosk.byHand.digits"]);
    for (const [key, text] of chinese) if (!signs.has(key)) expect(text, key).toMatch(/\p{Script=Han}/u);
    for (const [key, text] of english) {
      expect(text.trim(), key).not.toBe("");
      expect(text, key).not.toMatch(/\p{Script=Han}/u);
    }
  });
});

describe("the language", () => {
  it("is the first wish that we have, else Chinese", () => {
    expect(pickLocale(["fr-FR", "en-US", "zh-CN"])).toBe("en");
    expect(pickLocale(["zh-Hant-TW", "en"])).toBe("zh-CN");
    expect(pickLocale(["fr"])).toBe("zh-CN");
    expect(pickLocale([])).toBe("zh-CN");
  });
});
