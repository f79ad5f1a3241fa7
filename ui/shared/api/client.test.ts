// How answers and failures of the server are told apart.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Client, NoAnswer, Refused } from "./client";

const fetched = vi.fn<typeof fetch>();
beforeEach(() => {
  vi.stubGlobal("fetch", fetched);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
  fetched.mockReset();
});

const client = new Client({ language: () => "en", tenant: "2", timeout: 10_000 });
const answer = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

describe("a request", () => {
  it("says that a browser asks, in which language and for which tenant", async () => {
    fetched.mockResolvedValue(answer({ code: 0, msg: "", data: [] }));
    expect(await client.ownOrders()).toEqual([]);
    const [path, init] = fetched.mock.calls[0] ?? [];
    expect(path).toBe("/app-api/team/booking/booking/list");
    expect(init?.headers).toEqual({ "X-Client": "web", "Accept-Language": "en", "tenant-id": "2" });
    expect(init?.cache).toBe("no-store");
  });

  it("keeps the token of a link in the body and out of the address", async () => {
    fetched.mockResolvedValue(answer({ code: 0, msg: "", data: {} }));
    await client.signInByLink("secret-token");
    const [path, init] = fetched.mock.calls[0] ?? [];
    expect(path).toBe("/api/auth/sign-in-link");
    expect(init?.body).toBe('{"token":"secret-token"}');
  });

  it("escapes the order's number", async () => {
    fetched.mockResolvedValue(answer({ code: 0, msg: "", data: {} }));
    await client.verifyCode("A&b=1");
    expect(fetched.mock.calls[0]?.[0]).toBe("/app-api/team/booking/booking/verify-code?orderNo=A%26b%3D1");
  });
});

describe("a failure", () => {
  it("of the server's own has its code, words and data", async () => {
    fetched.mockResolvedValue(answer({ code: 2005, msg: "too often", data: { retryAfter: 7 } }, 429));
    const fault: unknown = await client.info().catch((thrown: unknown) => thrown);
    expect(fault).toBeInstanceOf(Refused);
    expect(fault).toMatchObject({ code: 2005, message: "too often", retryAfter: 7 });
  });

  it("of the network is no answer", async () => {
    fetched.mockRejectedValue(new TypeError("failed to fetch"));
    await expect(client.info()).rejects.toMatchObject({ away: "network" });
  });

  it("of something between, which answers a page of its own, is the server being away", async () => {
    fetched.mockResolvedValue(new Response("<html>502 Bad Gateway</html>", { status: 502 }));
    await expect(client.info()).rejects.toBeInstanceOf(NoAnswer);
    fetched.mockResolvedValue(new Response("<html>502 Bad Gateway</html>", { status: 502 }));
    await expect(client.info()).rejects.toMatchObject({ away: "server" });
  });

  it("is given up on after its time", async () => {
    vi.useFakeTimers();
    fetched.mockImplementation(
      (_, init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener("abort", () => {
            reject(new DOMException("aborted", "AbortError"));
          });
        }),
    );
    const asked = expect(client.info()).rejects.toMatchObject({ away: "network" });
    await vi.advanceTimersByTimeAsync(10_000);
    await asked;
  });

  it.each([
    ["a question", 10_000, (one: Client) => one.info()],
    ["what makes the server send a message", 16_000, (one: Client) => one.post("/api/sms/send", {})],
  ])("%s is given up on after %i ms", async (_, limit, ask) => {
    vi.useFakeTimers();
    let aborted = false;
    fetched.mockImplementation(
      (_, init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener("abort", () => {
            aborted = true;
            reject(new DOMException("aborted", "AbortError"));
          });
        }),
    );
    const asked = expect(ask(new Client({ language: () => "en" }))).rejects.toMatchObject({
      away: "network",
    });
    await vi.advanceTimersByTimeAsync(limit - 1);
    expect(aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await asked;
  });
});
