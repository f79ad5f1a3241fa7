// The visitor's page: own order, live code, QR.
import { firstToken, takeToken } from "./sign-in-link";
import { createApp } from "vue";
import { Client } from "../shared/api/client";
import { pickLocale, makeWords, LOCALES, type Locale } from "../shared/i18n";
import { common as en, visitor as enVisitor } from "../shared/i18n/en";
import { common as zh, visitor as zhVisitor } from "../shared/i18n/zh-CN";
import App from "./App.vue";
import { VisitorPage } from "./page";
import "./visitor.css";

const LOCALE_KEY = "guidepost.locale";

/** The language chosen by hand last, else the browser's. */
function firstLocale(): Locale {
  try {
    const chosen = localStorage.getItem(LOCALE_KEY);
    const known = LOCALES.find((locale) => locale === chosen);
    if (known) return known;
  } catch {
    // Storage may be forbidden; the browser's language will do.
  }
  return pickLocale(navigator.languages);
}

const words = makeWords(firstLocale(), {
  "zh-CN": { common: zh, visitor: zhVisitor },
  en: { common: en, visitor: enVisitor },
});
const query = new URLSearchParams(location.search);
const client = new Client({
  language: () => words.locale.value,
  tenant: query.get("tenant") ?? undefined,
});
const page = new VisitorPage({
  client,
  now: () => performance.now(),
  wanted: () => new URLSearchParams(location.search).get("order"),
  chose: (orderNo) => {
    const address = new URL(location.href);
    address.searchParams.set("order", orderNo);
    history.pushState(null, "", address);
  },
});

createApp(App, {
  page,
  client,
  onLocale: (locale: Locale) => {
    words.locale.value = locale;
    try {
      localStorage.setItem(LOCALE_KEY, locale);
    } catch {
      // It is asked for again at the next visit.
    }
  },
})
  .use(words.plugin)
  .mount("#app");

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") page.hidden();
  else void page.returned();
});
window.addEventListener("pagehide", () => {
  page.hidden();
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) void page.returned();
});
window.addEventListener("online", () => void page.online());
window.addEventListener("popstate", () => {
  page.goToWanted();
});
window.addEventListener("hashchange", () => {
  const token = takeToken();
  if (token !== null) void page.start(token);
});

void page.start(firstToken);
