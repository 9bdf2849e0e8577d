/** Parses the blocks of Markdown: paragraphs, headings, lists, code, tables, quotes. Each line is read once for each
 * level of nesting, and the number of levels is limited. */

export type Block =
  | { kind: "paragraph" | "plain"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; start: number | null; items: Block[][] }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "rule" };

const MAX_DEPTH = 6;
const MAX_COLUMNS = 40;
/** The text after this many blocks is shown without formatting. */
const MAX_BLOCKS = 2_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]{0,100})$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]{0,9}){3,}|(?:-[ \t]{0,9}){3,}|(?:_[ \t]{0,9}){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DIVIDER_CELL = /^:?-+:?$/;

/** Splits a text into sections that can be parsed independently. While an answer is being written, only its last
 * section changes, so the other sections are not rendered again. */
export function sections(text: string): string[] {
  const complete: string[] = [];
  let current: string[] = [];
  let fence: string | null = null;
  let isAfterBlank = false;
  for (const line of text.split("\n")) {
    // The last line can end within a list marker, such as `1` or `-`, so a part of a marker is treated as nested too.
    const isNested = /^\s|^[-*+]( |$)|^\d{1,9}([.)]?$|[.)] )|^>/.test(line);
    if (fence === null && isAfterBlank && line.trim() !== "" && !isNested && current.length > 0) {
      complete.push(current.join("\n"));
      current = [];
    }
    current.push(line);
    if (fence !== null) fence = closes(line, fence) ? null : fence;
    else fence = FENCE.exec(line)?.[1] ?? null;
    isAfterBlank = line.trim() === "";
  }
  if (current.length > 0) complete.push(current.join("\n"));
  return complete;
}

export function blocks(text: string): Block[] {
  return read(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

function read(lines: readonly string[], depth: number): Block[] {
  const parsed: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    if (parsed.length >= MAX_BLOCKS) return [...parsed, { kind: "plain", text: lines.slice(at).join("\n") }];
    const [block, end] = one(lines, at, depth);
    parsed.push(block);
    at = end;
  }
  return parsed;
}

/** Returns the block that begins at line `at`, and the index of the first line after the block. */
function one(lines: readonly string[], at: number, depth: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line);
  if (fence !== null) return codeBlock(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    return [{ kind: "heading", level: heading[1]?.length ?? 1, text: (heading[2] ?? "").replace(/ #{1,6} *$/, "").trim() }, at + 1];
  }
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return list(lines, at, depth);
  return table(lines, at) ?? paragraph(lines, at, depth);
}

function closes(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === (fence[0] ?? "`").repeat(text.length);
}

function codeBlock(lines: readonly string[], at: number, [line, fence = "```", language = ""]: RegExpExecArray): [Block, number] {
  const indent = line.length - line.trimStart().length;
  let end = at + 1;
  while (end < lines.length && !closes(lines[end] ?? "", fence)) end += 1;
  const code = lines.slice(at + 1, end).map((text) => text.slice(Math.min(indent, text.length - text.trimStart().length)));
  return [{ kind: "code", language: language.trim().split(" ")[0] ?? "", text: code.join("\n") }, end + 1];
}

function quote(lines: readonly string[], at: number, depth: number): [Block, number] {
  const inner: string[] = [];
  let end = at;
  for (let match = QUOTE.exec(lines[end] ?? ""); match !== null; match = QUOTE.exec(lines[end] ?? "")) {
    inner.push(match[1] ?? "");
    end += 1;
  }
  return [{ kind: "quote", blocks: read(inner, depth + 1) }, end];
}

function list(lines: readonly string[], at: number, depth: number): [Block, number] {
  const isOrdered = /^ *\d/.test(lines[at] ?? "");
  const start = isOrdered ? Number.parseInt(lines[at] ?? "1", 10) : null;
  const items: string[][] = [];
  let indent = 0;
  let end = at;
  let isAfterBlank = false;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    const margin = line.length - line.trimStart().length;
    const item = margin >= indent && items.length > 0 ? null : ITEM.exec(line);
    if (line.trim() === "") {
      items.at(-1)?.push("");
    } else if (item !== null && !RULE.test(line)) {
      if (/^\d/.test(item[2] ?? "") !== isOrdered) break;
      indent = (item[1]?.length ?? 0) + Math.min(2, item[2]?.length ?? 1);
      items.push([item[3] ?? ""]);
    } else if (items.length > 0 && margin >= indent) {
      items.at(-1)?.push(line.slice(indent));
    } else if (isAfterBlank || isStart(line)) {
      break;
    } else {
      items.at(-1)?.push(line.trimStart());
    }
    isAfterBlank = line.trim() === "";
  }
  return [{ kind: "list", start, items: items.map((item) => read(item, depth + 1)) }, end];
}

function isStart(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

function table(lines: readonly string[], at: number): [Block, number] | null {
  const line = lines[at] ?? "";
  const divider = lines[at + 1] ?? "";
  if (!line.includes("|") || !divider.includes("-")) return null;
  const head = cells(line);
  const marks = cells(divider);
  if (marks.length !== head.length || !marks.every((mark) => DIVIDER_CELL.test(mark))) return null;
  const rows: string[][] = [];
  let end = at + 2;
  for (; end < lines.length && (lines[end] ?? "").includes("|"); end += 1) {
    const row = cells(lines[end] ?? "");
    rows.push(head.map((_, column) => row[column] ?? ""));
  }
  return [{ kind: "table", head, rows }, end];
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/, MAX_COLUMNS).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end] ?? "";
    if (line.trim() === "" || isStart(line) || (depth < MAX_DEPTH && ITEM.test(line)) || table(lines, end) !== null) break;
    end += 1;
  }
  return [{ kind: "paragraph", text: lines.slice(at, end).map((line) => line.trimStart()).join("\n") }, end];
}
