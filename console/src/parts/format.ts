/** Formats numbers, money, durations and times for display. */
import { texts } from "../texts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en");
const SHORT_TIME = new Intl.DateTimeFormat("en", {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const DATE = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const DATE_UTC = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" });
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });

const BYTE_UNITS: readonly [string, number][] = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

/** Amounts below this many dollars are shown with two significant digits instead of two decimals. */
const SMALL_DOLLARS = 0.01;
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60],
];

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return texts.none;
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value);
}

export function wholeNumber(value: number | null | undefined): string {
  return value === null || value === undefined ? texts.none : WHOLE.format(value);
}

export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return texts.none;
  if (value === 0) return "$0.00";
  if (value < SMALL_DOLLARS) return `$${Number(value.toPrecision(2)).toFixed(decimals(value))}`;
  return `$${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

function decimals(value: number): number {
  return Math.min(10, 1 - Math.floor(Math.log10(value)));
}

export function duration(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return texts.none;
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(2)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

export function bytes(value: number): string {
  const unit = BYTE_UNITS.find(([, size]) => value >= size);
  return unit === undefined ? `${WHOLE.format(value)} bytes` : `${(value / unit[1]).toFixed(1)} ${unit[0]}`;
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value === 100 || value >= 10 ? Math.round(value) : value.toFixed(1)}%`;
}

export function shortTime(moment: string): string {
  return SHORT_TIME.format(new Date(moment));
}

export function date(moment: string): string {
  return DATE.format(new Date(moment));
}

/** Formats a day in UTC, for periods that begin at midnight UTC. */
export function dateUtc(moment: Date): string {
  return DATE_UTC.format(moment);
}

export function utc(moment: string): string {
  return texts.utc(new Date(moment).toISOString().replace("T", " ").replace("Z", ""));
}

/** Formats the time between now and a moment: "3 minutes ago", "in 2 months". */
export function relative(moment: string, now: number = Date.now()): string {
  const seconds = (new Date(moment).getTime() - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return RELATIVE.format(Math.trunc(seconds / size), unit);
  }
  return seconds > 0 ? RELATIVE.format(1, "minute") : RELATIVE.format(0, "second");
}
