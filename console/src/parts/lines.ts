/** Lists in text areas: one entry a line. */

export function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

export function textOf(lines: unknown): string {
  return Array.isArray(lines) ? lines.join("\n") : "";
}
