// Signing in by number and code, as every page does it: the number with what is wrong with it, and one attempt at a time.
import { type Ref, ref } from "vue";
import { Refused } from "../api/client";
import { cleanDigits, parseMobile } from "../numbers";

/** What is wrong with the number; the server's refusal is told in the code field's one place for it. */
export type NumberFault = "empty" | "ill_formed" | "too_long" | "refused";

/** Characters of a number, once cleaned: more than any has (`+` and fifteen digits), less than a field shows. */
const NUMBER_LIMIT = 18;

export interface LogInOptions {
  number: Readonly<Ref<HTMLInputElement | null>>;
  field: Readonly<Ref<{ submit: () => void; goOn: () => void } | null>>;
  /** Signs in; throws `Refused` where the server has answered no. */
  use: (mobile: string, code: string, requestId: string) => Promise<unknown>;
}

function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function useLogIn({ number, field, use }: LogInOptions) {
  const mobile = ref("");
  const code = ref("");
  const numberFault = ref<NumberFault | null>(null);
  const signingIn = ref(false);

  function refused(why: NumberFault): void {
    numberFault.value = why;
    number.value?.focus();
  }

  /** Takes what the number's field would hold now. What no number has room for is left out, and said. */
  function take(text: string): void {
    const cleaned = cleanDigits(text);
    const tooLong = cleaned.length > NUMBER_LIMIT;
    mobile.value = tooLong ? cleaned.slice(0, NUMBER_LIMIT) : text;
    numberFault.value = tooLong ? "too_long" : null;
  }

  /** After a key or a paste; an input method is not disturbed while it composes. */
  function typed(event: Event): void {
    if (!(event as InputEvent).isComposing) take((event.target as HTMLInputElement).value);
  }

  /** On leaving the number: shown as it is understood, and said if it is none. */
  function left(): void {
    mobile.value = cleanDigits(mobile.value);
    const parsed = parseMobile(mobile.value);
    if (!parsed.ok && parsed.why === "ill_formed") numberFault.value = "ill_formed";
  }

  /** Goes on with a number that is one, or says beside it that it is none. */
  function goOn(then: () => void): void {
    const parsed = parseMobile(mobile.value);
    if (parsed.ok) then();
    else refused(parsed.why);
  }

  /** Enter, by a keyboard: from the number on, from the code in; buttons are pressed. Held down it does nothing more. */
  function enter(event: KeyboardEvent): void {
    const inField = event.target instanceof HTMLInputElement;
    if (event.isComposing || (!inField && !event.repeat)) return;
    event.preventDefault();
    if (event.repeat) return;
    if (event.target === number.value) goOn(() => field.value?.goOn());
    else submit();
  }

  /** The attempt that got no answer is repeated under its own name: a code that it used up still lets its user in. */
  let last: { number: string; code: string; requestId: string } | null = null;

  async function signIn(value: string): Promise<void> {
    const parsed = parseMobile(mobile.value);
    if (!parsed.ok) {
      refused(parsed.why);
      return;
    }
    if (last?.number !== parsed.value || last.code !== value) {
      last = { number: parsed.value, code: value, requestId: newName() };
    }
    signingIn.value = true;
    try {
      await use(parsed.value, value, last.requestId);
      last = null;
    } catch (fault) {
      if (fault instanceof Refused) last = null;
      throw fault;
    } finally {
      signingIn.value = false;
    }
  }

  function submit(): void {
    if (signingIn.value) return;
    goOn(() => field.value?.submit());
  }

  return { mobile, code, numberFault, signingIn, refused, take, typed, left, signIn, submit, enter };
}
