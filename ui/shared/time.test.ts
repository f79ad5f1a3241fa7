// Times in the venue's zone, wherever the machine is.
import { describe, expect, it } from "vitest";
import { countdown, VenueTime } from "./time";

const LATE = Date.UTC(2026, 6, 31, 16, 5);

describe("the venue's time", () => {
  it("is of its own zone, in 24 hours", () => {
    expect(new VenueTime("Asia/Shanghai", "zh-CN").time(LATE)).toBe("00:05");
    expect(new VenueTime("Asia/Shanghai", "en").time(LATE)).toBe("00:05");
    expect(new VenueTime("America/New_York", "en").time(LATE)).toBe("12:05");
    expect(new VenueTime("Asia/Shanghai", "en").time(LATE + 13 * 3_600_000)).toBe("13:05");
  });

  it("tells the venue's day", () => {
    expect(new VenueTime("Asia/Shanghai", "zh-CN").dateTime(LATE)).toMatch(/8月1日.*周六 00:05/);
    expect(new VenueTime("Asia/Shanghai", "en").dateTime(LATE)).toBe("Sat 1 Aug 00:05");
  });

  it("names the day only of another day", () => {
    const venue = new VenueTime("Asia/Shanghai", "en");
    expect(venue.timeOrDate(LATE, LATE + 3_600_000)).toBe("00:05");
    expect(venue.timeOrDate(LATE, LATE - 600_000)).toBe("Sat 1 Aug 00:05");
  });

  it("counts down in seconds, long waits in minutes", () => {
    expect([0.2, 42, 99, 100, 598, -3].map(countdown)).toEqual(["1", "42", "99", "1:40", "9:58", "0"]);
  });
});
