// The house's own SMS gateway, played: takes what the server posts and keeps it for the test to read.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Message {
  /** Where it was posted: channels have addresses of their own. */
  path: string;
  requestId: string;
  mobile: string;
  scene: string;
  templateId: string;
  params: { code: string; ttl: string };
}

export interface Gateway {
  url: string;
  /** Everything posted, whether it was taken or not. */
  messages: Message[];
  /** The HTTP status of the answers. */
  status: number;
  /** The code that came last. */
  code: () => string;
  close: () => Promise<void>;
}

export async function openGateway(): Promise<Gateway> {
  const messages: Message[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const posted = JSON.parse(Buffer.concat(chunks).toString()) as Message;
      messages.push({ ...posted, path: request.url ?? "" });
      response.writeHead(gateway.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const gateway: Gateway = {
    url: `http://127.0.0.1:${port}/sms`,
    messages,
    status: 200,
    code: () => {
      const last = messages.at(-1);
      if (!last) throw new Error("no message has come");
      return last.params.code;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  };
  return gateway;
}
