// The kiosk's screen.
import { createApp } from "vue";
import { makeWords } from "../shared/i18n";
import { common as en, kiosk as enKiosk } from "../shared/i18n/en";
import { common as zh, kiosk as zhKiosk } from "../shared/i18n/zh-CN";
import App from "./App.vue";
import { findHost } from "./host";
import NoShell from "./NoShell.vue";
import "./kiosk.css";

const words = makeWords("zh-CN", {
  "zh-CN": { common: zh, kiosk: zhKiosk },
  en: { common: en, kiosk: enKiosk },
});

void findHost().then((host) => {
  const app = host ? createApp(App, { host }) : createApp(NoShell);
  app.use(words.plugin).mount("#app");
});
