// The languages of the pages: zh-CN first, en complete.
import type { Plugin, Ref } from "vue";
import { createI18n, useI18n } from "vue-i18n";
import type { Common, Kiosk, Visitor } from "./zh-CN";

export const LOCALES = ["zh-CN", "en"] as const;
export type Locale = (typeof LOCALES)[number];

/** What each language calls itself. */
export const LANGUAGE_NAMES: Record<Locale, string> = { "zh-CN": "中文", en: "English" };

type Leaves<Words> = {
  [Key in keyof Words & string]: Words[Key] extends string ? Key : `${Key}.${Leaves<Words[Key]>}`;
}[keyof Words & string];

/** Every text there is; a key that does not exist is a compile error. */
export type Key = Leaves<{ common: Common; visitor: Visitor; kiosk: Kiosk }>;

/** Gives a text in the language of the screen: with its values, or in the form for a number `n`. */
export interface Translate {
  (key: Key, values?: Record<string, string | number>): string;
  (key: Key, n: number): string;
}

/** The first of the wished languages that we have; Chinese where none is. */
export function pickLocale(wished: readonly string[]): Locale {
  for (const tag of wished) {
    const language = tag.toLowerCase().split("-")[0];
    if (language === "zh") return "zh-CN";
    if (language === "en") return "en";
  }
  return "zh-CN";
}

/** One page's words, for the app and for what stands outside its components. */
export interface Words {
  plugin: Plugin;
  locale: Ref<Locale>;
  t: Translate;
}

export function makeWords(locale: Locale, messages: Record<Locale, Record<string, unknown>>): Words {
  const i18n = createI18n({
    legacy: false,
    locale,
    fallbackLocale: "zh-CN",
    messages: messages as Record<Locale, Record<string, string>>,
  });
  return { plugin: i18n, locale: i18n.global.locale, t: i18n.global.t };
}

export function useWords(): { t: Translate; locale: Ref<Locale> } {
  const { t, locale } = useI18n({ useScope: "global" });
  return { t, locale: locale as Ref<Locale> };
}
