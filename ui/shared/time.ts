// Times as the venue's clock on the wall shows them: its zone, 24 hours, whatever the machine is set to.
import type { Locale } from "./i18n";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(locale: Locale, zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, zone, options]);
  let found = formats.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat(locale === "en" ? "en-GB" : locale, {
      ...options,
      timeZone: zone,
      hourCycle: "h23",
    });
    formats.set(key, found);
  }
  return found;
}

/** Formats moments (Unix milliseconds) in one zone and language. */
export class VenueTime {
  constructor(
    readonly zone: string,
    readonly locale: Locale,
  ) {}

  /** `09:41` */
  time(at: number): string {
    return format(this.locale, this.zone, { hour: "2-digit", minute: "2-digit" }).format(at);
  }

  /** `8月1日周六` or `Sat 1 Aug` */
  date(at: number): string {
    const text = format(this.locale, this.zone, { month: "short", day: "numeric", weekday: "short" }).format(
      at,
    );
    return text.replace(",", "");
  }

  /** `09:41` on the day that `now` is in, else with the date. */
  timeOrDate(at: number, now: number): string {
    return this.date(at) === this.date(now) ? this.time(at) : this.dateTime(at);
  }

  /** `8月1日周六 09:41` */
  dateTime(at: number): string {
    return `${this.date(at)} ${this.time(at)}`;
  }

  /** `09:00–10:30` */
  span(from: number, to: number): string {
    return `${this.time(from)}–${this.time(to)}`;
  }
}

/** Seconds that the server named, held to what makes sense: a second at least, a day at most. */
export function sensibleSeconds(seconds: number): number {
  return Math.min(86_400, Math.max(1, seconds));
}

/** Seconds left as a person reads them: `42`, `9:58`. */
export function countdown(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 100) return String(whole);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
