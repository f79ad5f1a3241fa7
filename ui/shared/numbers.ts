// Cleans and checks typed or pasted numbers: the same rules as the server's crate `wire`.

/** White space and the characters that have no width: what a paste brings along unseen. */
const UNSEEN = /[\p{White_Space}\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]/gu;

export type Parsed = { ok: true; value: string } | { ok: false; why: "empty" | "ill_formed" };

/**
 * Drops unseen characters around and inside a number and turns full-width digits into ASCII ones. Everything else
 * stays, so that it is refused under the field: nothing may vanish in silence.
 */
export function cleanDigits(typed: string): string {
  return typed
    .replace(UNSEEN, "")
    .replace(/[０-９]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xff10 + 0x30));
}

/** A verify code: six digits, the first one not 0. A string from end to end, never a number. */
export function parseVerifyCode(typed: string): Parsed {
  const value = cleanDigits(typed);
  if (value === "") return { ok: false, why: "empty" };
  return /^[1-9][0-9]{5}$/.test(value) ? { ok: true, value } : { ok: false, why: "ill_formed" };
}

/** An SMS code: six digits, leading zeros included; another thing than a verify code. */
export function parseSmsCode(typed: string): Parsed {
  const value = cleanDigits(typed);
  if (value === "") return { ok: false, why: "empty" };
  return /^[0-9]{6}$/.test(value) ? { ok: true, value } : { ok: false, why: "ill_formed" };
}

/** A mobile number in E.164: a bare mainland number is one of `+86`. */
export function parseMobile(typed: string): Parsed {
  const value = cleanDigits(typed);
  if (value === "") return { ok: false, why: "empty" };
  const mainland = /^(?:\+86)?(1[3-9][0-9]{9})$/.exec(value)?.[1];
  if (mainland) return { ok: true, value: `+86${mainland}` };
  return /^\+(?!86)[1-9][0-9]{6,14}$/.test(value) ? { ok: true, value } : { ok: false, why: "ill_formed" };
}

/** An order's number: `[0-9A-Za-z_-]{1,64}`, upper-cased. */
export function parseOrderNo(typed: string): Parsed {
  const value = cleanDigits(typed);
  if (value === "") return { ok: false, why: "empty" };
  return /^[0-9A-Za-z_-]{1,64}$/.test(value)
    ? { ok: true, value: value.toUpperCase() }
    : { ok: false, why: "ill_formed" };
}

/** The last six characters of an order's number: what a screen shows of it at a glance. */
export function orderTail(orderNo: string): string {
  return orderNo.slice(-6);
}

/** Six digits in two groups of three, as people read them out. */
export function inGroups(code: string): [string, string] {
  return [code.slice(0, 3), code.slice(3)];
}
