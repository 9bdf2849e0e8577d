/** Converts between lists and the text of a text area with one entry per line. */

export function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

export function textOf(lines: unknown): string {
  return Array.isArray(lines) ? lines.join("\n") : "";
}
