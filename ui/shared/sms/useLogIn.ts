// Signing in by number and code, as every page does it: the number with what is wrong with it, and one attempt at a time.
import { type Ref, ref } from "vue";
import { Refused } from "../api/client";
import { cleanDigits, parseMobile } from "../numbers";

/** What is wrong with the number; the server's refusal is told in the code field's one place for it. */
export type NumberFault = "empty" | "ill_formed" | "refused";

export interface LogInOptions {
  number: Readonly<Ref<HTMLInputElement | null>>;
  field: Readonly<Ref<{ submit: () => void } | null>>;
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

  /** On leaving the number: shown as it is understood, and said if it is none. */
  function left(): void {
    mobile.value = cleanDigits(mobile.value);
    const parsed = parseMobile(mobile.value);
    if (!parsed.ok && parsed.why === "ill_formed") numberFault.value = "ill_formed";
  }

  /** Goes on with a number that is one, or says beside it that it is none. */
  function goOn(then: (mobile: string) => void): void {
    const parsed = parseMobile(mobile.value);
    if (parsed.ok) then(parsed.value);
    else refused(parsed.why);
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

  return { mobile, code, numberFault, signingIn, refused, left, goOn, signIn, submit };
}
