// Starts the real server with its demo's bookings, each test its own, and gives intent methods to work with it.
import { type Page, test as base } from "@playwright/test";
import { prepareZXingModule, readBarcodes } from "zxing-wasm/reader";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Options {
  /** Seconds that a verify code lives. */
  codeLife: number;
  /** Further settings, as environment variables. */
  settings: Record<string, string>;
}

/** A running server and the links that it printed. */
export interface Venue {
  url: string;
  /** Everything that the server logged, at its most talkative. */
  log: () => string;
  /** The one-time link of an order's visitor; each may be taken once. */
  linkOf: (orderNo: string) => string;
  /** Orders whose visitors have links, in the order in which they were printed. */
  orders: string[];
  /** A guide redeems an order by its code. */
  redeem: (orderNo: string, verifyCode: string) => Promise<{ code: number }>;
  stop: () => Promise<void>;
}

interface SignedIn {
  data: { token: string };
}

async function post(url: string, body: object, token?: string): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    body: JSON.stringify(body),
  });
  return response.json();
}

export async function openVenue({ codeLife, settings }: Options): Promise<Venue> {
  const binary = process.env.GUIDEPOST_SERVER_BIN;
  if (!binary) throw new Error("GUIDEPOST_SERVER_BIN must name the server's binary");
  const folder = await mkdtemp(join(tmpdir(), "guidepost-browser-"));
  const server = spawn(binary, ["serve", "--demo"], {
    cwd: folder,
    env: {
      ...process.env,
      GUIDEPOST_LISTEN: "127.0.0.1:0",
      GUIDEPOST_DATABASE__URL: `sqlite://${join(folder, "guidepost.db")}`,
      GUIDEPOST_VERIFY_CODE__TTL: String(codeLife),
      RUST_LOG: "trace",
      ...settings,
    },
  });
  let log = "";
  server.stderr.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  const ended = new Promise<never>((_, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => {
      reject(new Error(`the server ended with ${code ?? "a signal"}: ${log.slice(-2_000)}`));
    });
  });
  ended.catch(() => undefined);

  const links = new Map<string, string>();
  const ready = new Promise<{ url: string; guide: string }>((resolve) => {
    let url = "";
    createInterface(server.stdout).on("line", (line) => {
      const address = /^listening on (http:\S+)$/.exec(line)?.[1];
      if (address) url = address;
      const link = /(http\S+#sign-in=(\S+))$/.exec(line);
      const orderNo = /[?&]order=([^#&\s]+)/.exec(line)?.[1];
      if (link?.[1] && orderNo) links.set(orderNo, link[1]);
      else if (link?.[2]) resolve({ url, guide: link[2] });
    });
  });
  const { url, guide } = await Promise.race([ready, ended]);
  const page = await fetch(url);
  if (!page.headers.get("content-type")?.startsWith("text/html")) {
    server.kill("SIGTERM");
    throw new Error(
      `the server has no visitors' page (npm run build, then build the server): ${await page.text()}`,
    );
  }
  let guideToken: string | undefined;
  return {
    url,
    log: () => log,
    orders: [...links.keys()],
    linkOf: (orderNo) => {
      const link = links.get(orderNo);
      if (!link) throw new Error(`there is no link for ${orderNo}`);
      links.delete(orderNo);
      return link;
    },
    redeem: async (orderNo, verifyCode) => {
      if (!guideToken) {
        const signedIn = (await post(`${url}/api/auth/sign-in-link`, { token: guide })) as SignedIn;
        guideToken = signedIn.data.token;
      }
      const path = "/app-api/team/guide-task/booking/consume";
      return (await post(url + path, { orderNo, verifyCode }, guideToken)) as { code: number };
    },
    stop: async () => {
      if (server.exitCode === null && server.signalCode === null) {
        const exit = new Promise((resolve) => server.once("exit", resolve));
        server.kill("SIGTERM");
        await exit;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const test = base.extend<Options & { venue: Venue; orderNo: string }>({
  codeLife: [60, { option: true }],
  settings: [{}, { option: true }],
  venue: async ({ codeLife, settings }, use) => {
    const venue = await openVenue({ codeLife, settings });
    await use(venue);
    await venue.stop();
  },
  orderNo: async ({ venue }, use) => {
    const [first] = venue.orders;
    if (!first) throw new Error("the demo has no order");
    await use(first);
  },
});
export { expect } from "@playwright/test";

/** The six digits as the page shows them. */
export async function digits(page: Page): Promise<string> {
  const text = await page.getByTestId("digits").innerText();
  return text.replace(/\s/g, "");
}

let decoder: Promise<void> | undefined;

async function loadDecoder(): Promise<void> {
  const file = createRequire(import.meta.url).resolve("zxing-wasm/reader/zxing_reader.wasm");
  const wasm = await readFile(file);
  const wasmBinary = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength);
  prepareZXingModule({ overrides: { wasmBinary } });
}

/** Reads the QR off a picture of the page with a decoder that has nothing to do with the one who drew it. */
export async function readQr(picture: Buffer) {
  await (decoder ??= loadDecoder());
  const found = await readBarcodes(new Blob([new Uint8Array(picture)]), { formats: ["QRCode"] });
  const [symbol, another] = found;
  if (!symbol || another) throw new Error(`${found.length} QR codes are in the picture`);
  return symbol;
}
