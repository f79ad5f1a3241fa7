// The tones of the desk: a click at the decode, then one tone an answer. A kiosk without sound stays silent.
import type { ScreenKind } from "./state";

export type Sound = "click" | "rising" | "double" | "falling";

/** The sound with which a screen opens; "cannot check" has none but the click before it. */
export function soundOf(kind: ScreenKind): Sound | null {
  switch (kind) {
    case "reading":
    case "foreign":
      return "click";
    case "admitted":
      return "rising";
    case "already_redeemed":
    case "wrong_status":
      return "double";
    case "not_valid":
    case "not_yours":
    case "too_many":
    case "frozen":
      return "falling";
    default:
      return null;
  }
}

interface Tone {
  at: number;
  from: number;
  to: number;
  lasts: number;
}

const TONES: Record<Sound, Tone[]> = {
  click: [{ at: 0, from: 1_800, to: 1_200, lasts: 0.03 }],
  rising: [
    { at: 0, from: 660, to: 660, lasts: 0.12 },
    { at: 0.12, from: 990, to: 990, lasts: 0.22 },
  ],
  double: [
    { at: 0, from: 520, to: 520, lasts: 0.14 },
    { at: 0.22, from: 520, to: 520, lasts: 0.14 },
  ],
  falling: [{ at: 0, from: 440, to: 180, lasts: 0.45 }],
};

let context: AudioContext | undefined;

/** Plays a sound; whatever goes wrong with it is no business of the desk's. */
export function play(sound: Sound): void {
  try {
    context ??= new AudioContext();
    const audio = context;
    if (audio.state === "suspended") audio.resume().catch(() => undefined);
    for (const tone of TONES[sound]) {
      const start = audio.currentTime + tone.at;
      const oscillator = audio.createOscillator();
      const gain = audio.createGain();
      oscillator.type = "triangle";
      oscillator.frequency.setValueAtTime(tone.from, start);
      oscillator.frequency.exponentialRampToValueAtTime(tone.to, start + tone.lasts);
      gain.gain.setValueAtTime(0.0001, start);
      gain.gain.exponentialRampToValueAtTime(0.4, start + 0.008);
      gain.gain.exponentialRampToValueAtTime(0.0001, start + tone.lasts);
      oscillator.connect(gain).connect(audio.destination);
      oscillator.start(start);
      oscillator.stop(start + tone.lasts + 0.02);
    }
  } catch {
    // No sound device, or none that this user may open.
  }
}
