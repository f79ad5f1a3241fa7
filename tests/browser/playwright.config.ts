// The pages in a real browser: the visitor's page on the real server, the kiosk's screens on a played shell.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  fullyParallel: true,
  forbidOnly: true,
  workers: 2,
  reporter: "list",
  outputDir: "test-results",
  use: {
    locale: "zh-CN",
    // A venue abroad of the machine's own zone, so that a time in the wrong zone shows.
    timezoneId: "America/New_York",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
