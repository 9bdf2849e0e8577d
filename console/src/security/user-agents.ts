/** Names of programs, from their `User-Agent` headers. */

// Browsers also contain the names of those they are compatible with, so the order matters.
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"], [/\bOPR\//, "Opera"], [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(HeadlessChrome|Chrome|CriOS)\//, "Chrome"], [/\bVersion\/.*\bSafari\//, "Safari"],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/\bWindows\b/, "Windows"], [/\biPhone\b/, "iPhone"], [/\biPad\b/, "iPad"], [/\bAndroid\b/, "Android"], [/\bCrOS\b/, "ChromeOS"],
  [/\b(Macintosh|Mac OS X)\b/, "macOS"], [/\bLinux\b/, "Linux"],
];

/** Returns the browser and the operating system, or the header itself if it names no known browser. */
export function programOf(userAgent: string): string {
  const find = (names: readonly [RegExp, string][]) => names.find(([pattern]) => pattern.test(userAgent))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  return browser === undefined ? userAgent : system === undefined ? browser : `${browser} · ${system}`;
}
