// Builds one page a mode (kiosk, visitor), each standalone with its own index.html.
import vue from "@vitejs/plugin-vue";
import { resolve } from "node:path";
import { defineConfig } from "vite";

// The kiosk runs in the system's web view; visitors bring their own phones, some of them old.
const pages = {
  kiosk: { port: 5173, target: ["safari16", "chrome100"] },
  visitor: { port: 5174, target: ["es2020", "safari14", "chrome87"] },
};

export default defineConfig(({ mode }) => {
  if (mode !== "kiosk" && mode !== "visitor") {
    throw new Error(`the mode names the page: kiosk or visitor, not ${mode}`);
  }
  const page = pages[mode];
  const server = process.env.GUIDEPOST_URL ?? "http://127.0.0.1:8080";
  // The server takes writes from its own pages alone, and here this one stands in for them.
  const proxy = { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } };
  return {
    root: resolve(import.meta.dirname, mode),
    base: "./",
    plugins: [vue()],
    define: {
      __VUE_OPTIONS_API__: false,
      __VUE_PROD_DEVTOOLS__: false,
      __VUE_I18N_LEGACY_API__: false,
      __VUE_I18N_FULL_INSTALL__: false,
      __INTLIFY_PROD_DEVTOOLS__: false,
    },
    build: {
      outDir: resolve(import.meta.dirname, "dist", mode),
      emptyOutDir: true,
      target: page.target,
      // The content security policy knows no `data:`.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
    server: {
      port: page.port,
      strictPort: true,
      proxy: mode === "visitor" ? { "/api": proxy, "/app-api": proxy } : {},
    },
  };
});
