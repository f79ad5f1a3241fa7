// The name of an attempt to use a code: one that got no answer is repeated under its own, so that a code that was used up
// by it still lets its user in.

function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Attempts {
  private last: { number: string; code: string; requestId: string } | null = null;

  /** The request id for this number and code: the last one again, until it was settled. */
  requestId(number: string, code: string): string {
    if (this.last?.number !== number || this.last.code !== code) {
      this.last = { number, code, requestId: newName() };
    }
    return this.last.requestId;
  }

  /** The server has answered. */
  settled(): void {
    this.last = null;
  }
}
