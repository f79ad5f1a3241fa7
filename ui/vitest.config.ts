// Unit tests of the pages; what needs a real browser is in tests/browser.
import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [vue()],
  test: { environment: "happy-dom", include: ["**/*.test.ts"] },
});
