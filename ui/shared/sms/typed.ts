// What the code's field holds after a key or a paste.
import { cleanDigits } from "../numbers";

const LENGTH = 6;

export type TypedFault = "empty" | "ill_formed" | "too_long";

export interface Typed {
  value: string;
  fault: TypedFault | null;
  /** Six digits that may be sent by themselves. */
  complete: boolean;
}

/**
 * Cleans what the field shows and holds it to six characters, spaces and the like not counted. A seventh key does
 * nothing, as in any full field. A longer paste is cut and said: it was hardly meant as a code, so it is not sent. One
 * with other characters in it, a whole message perhaps, leaves nothing: its beginning would be read as a code.
 */
export function takeTyped(before: string, shown: string): Typed {
  let value = cleanDigits(shown);
  let cut = false;
  if (value.length > LENGTH) {
    const oneKeyMore = before.length === LENGTH && value.length === LENGTH + 1;
    cut = !oneKeyMore;
    if (cut && /[^0-9]/.test(value)) return { value: "", fault: "ill_formed", complete: false };
    value = oneKeyMore ? before : value.slice(0, LENGTH);
  }
  const foreign = /[^0-9]/.test(value);
  return {
    value,
    fault: cut ? "too_long" : foreign ? "ill_formed" : null,
    complete: !cut && !foreign && value.length === LENGTH,
  };
}
