/** The difference between two texts, and texts of strangers with their invisible characters. */

export interface Part {
  kind: "same" | "removed" | "added";
  text: string;
}

/** The maximum size of the table of the comparison. Larger texts are shown as one removed and one added part. */
const MAX_CELLS = 1_000_000;

/** Characters that are not visible, or that change the direction of the text. Agents read them, people do not see them. */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** Returns the text with invisible characters as their numbers. */
export function visible(text: string): string {
  return text.replaceAll(INVISIBLE, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Returns a value of a definition as a text: a string as it is, any other value as formatted JSON. */
export function shownValue(value: unknown): string {
  return visible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

/** Returns the parts of both texts in their order. Words are compared, or lines if a text has several. */
export function differenceOf(before: string, after: string): Part[] {
  const [old, now] = [unitsOf(before, after), unitsOf(after, before)];
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const middle = compared(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return joined([
    { kind: "same", text: old.slice(0, start).join("") }, ...middle, { kind: "same", text: old.slice(old.length - end).join("") },
  ]);
}

function unitsOf(text: string, other: string): string[] {
  return text.split(text.includes("\n") && other.includes("\n") ? /(?<=\n)/ : /(?<=\s)(?=\S)/);
}

/** Finds the longest common sequence of units. */
function compared(old: readonly string[], now: readonly string[]): Part[] {
  const width = now.length + 1;
  if ((old.length + 1) * width > MAX_CELLS) return [{ kind: "removed", text: old.join("") }, { kind: "added", text: now.join("") }];
  const lengths = new Uint32Array((old.length + 1) * width);
  const lengthAt = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        old[row] === now[column] ? lengthAt(row + 1, column + 1) + 1 : Math.max(lengthAt(row + 1, column), lengthAt(row, column + 1));
    }
  }
  const parts: Part[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    const [removed, added] = [old[row], now[column]];
    if (removed !== undefined && removed === added) {
      parts.push({ kind: "same", text: removed });
      row += 1;
      column += 1;
    } else if (removed !== undefined && (added === undefined || lengthAt(row + 1, column) >= lengthAt(row, column + 1))) {
      parts.push({ kind: "removed", text: removed });
      row += 1;
    } else {
      parts.push({ kind: "added", text: added ?? "" });
      column += 1;
    }
  }
  return parts;
}

/** Joins neighbouring parts of one kind, and leaves out empty parts. */
function joined(parts: readonly Part[]): Part[] {
  const result: Part[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (part.text === "") continue;
    if (last?.kind === part.kind) last.text += part.text;
    else result.push({ ...part });
  }
  return result;
}
