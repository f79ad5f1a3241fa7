// What the QR says: the JSON form of the contract, its keys in the contract's order.
import encodeQR from "qr";

/** The payload's text. */
export function payload(orderNo: string, verifyCode: string): string {
  return JSON.stringify({ type: "TEAM_BOOKING_VERIFY", orderNo, verifyCode });
}

export interface Drawing {
  /** Modules along one side, the quiet zone of four on each side included. */
  size: number;
  /** The dark modules as an SVG path on a grid of that size. */
  path: string;
}

const QUIET = 4;

/** Draws a text as a QR code: error correction M, byte mode, no ECI. */
export function draw(text: string): Drawing {
  const rows = encodeQR(text, "raw", { ecc: "medium", encoding: "byte", border: QUIET });
  const parts: string[] = [];
  rows.forEach((row, y) => {
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue;
      const from = x;
      while (row[x + 1]) x++;
      parts.push(`M${from} ${y}h${x + 1 - from}v1h-${x + 1 - from}z`);
    }
  });
  return { size: rows.length, path: parts.join("") };
}
