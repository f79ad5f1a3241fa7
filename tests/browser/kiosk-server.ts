// Serves the kiosk's screens from a development server of their own, where a browser host plays the shell.
import { test as base } from "@playwright/test";
import { resolve } from "node:path";
import { createServer, preview } from "vite";

const ui = resolve(import.meta.dirname, "../../ui");

export const test = base.extend<object, { kioskUrl: string; builtKioskUrl: string }>({
  kioskUrl: [
    // Playwright reads the dependencies from the pattern, so it cannot be left out.
    // eslint-disable-next-line no-empty-pattern
    async ({}, use, worker) => {
      const server = await createServer({
        configFile: resolve(ui, "vite.config.ts"),
        mode: "kiosk",
        logLevel: "error",
        // Workers must not write to each other's cache.
        cacheDir: resolve(ui, `../node_modules/.cache/vite-kiosk-${worker.workerIndex}`),
        server: { port: 0, strictPort: false, host: "127.0.0.1", hmr: false, watch: null },
      });
      await server.listen();
      const [url] = server.resolvedUrls?.local ?? [];
      if (!url) throw new Error("the development server names no address");
      await use(url);
      await server.close();
    },
    { scope: "worker" },
  ],
  builtKioskUrl: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const server = await preview({
        configFile: resolve(ui, "vite.config.ts"),
        mode: "kiosk",
        logLevel: "error",
        preview: { port: 0, strictPort: false, host: "127.0.0.1" },
      });
      const [url] = server.resolvedUrls?.local ?? [];
      if (!url) throw new Error("the built page is served nowhere");
      await use(url);
      await server.close();
    },
    { scope: "worker" },
  ],
});
export { expect } from "@playwright/test";
