// The languages of the pages: zh-CN first, en complete.
import { createI18n, type I18n } from "vue-i18n";

export const LOCALES = ["zh-CN", "en"] as const;
export type Locale = (typeof LOCALES)[number];

/** What each language calls itself. */
export const LANGUAGE_NAMES: Record<Locale, string> = { "zh-CN": "中文", en: "English" };

/** The first of the wished languages that we have; Chinese where none is. */
export function pickLocale(wished: readonly string[]): Locale {
  for (const tag of wished) {
    const language = tag.toLowerCase().split("-")[0];
    if (language === "zh") return "zh-CN";
    if (language === "en") return "en";
  }
  return "zh-CN";
}

/** One page's words. */
export function makeI18n<Words extends object>(
  locale: Locale,
  words: Record<Locale, Words>,
): I18n<Record<Locale, Words>, object, object, Locale, false> {
  return createI18n({
    legacy: false,
    locale,
    fallbackLocale: "zh-CN",
    messages: words,
    // A missing key is a fault that the tests find; at the desk the Chinese words stand in.
    missingWarn: false,
    fallbackWarn: false,
  }) as unknown as I18n<Record<Locale, Words>, object, object, Locale, false>;
}
