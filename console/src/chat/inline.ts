/** Parses the inline elements of Markdown: emphasis, code, links and redaction labels. The time is linear in the length
 * of the text, times the depth of nesting. */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "label"; text: string; entity: string }
  | { kind: "strong" | "emphasis" | "deleted"; children: Inline[] }
  | { kind: "link"; href: string; image: boolean; children: Inline[] };

type Mark = { sign: string; kind: "strong" | "emphasis" | "deleted"; wholeWords: boolean };

/** In a longer text, only redaction labels are parsed. */
const MAX_INLINE_CHARACTERS = 20_000;
const MAX_DEPTH = 4;
const MAX_LINK_TEXT = 300;

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
const ESCAPED = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}_]/u;
const LABEL = /\[([A-Z][A-Z0-9_]{0,63})_\d{1,6}\]/y;
const LINK_TARGET = /\]\(\s{0,3}<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)>?(?:\s{1,3}"[^"\n]{0,300}")?\s{0,3}\)/y;
const BARE_ADDRESS = /https?:\/\/[^\s<>"'`\\*[\]]{1,2000}/y;
const NEXT_MARK = /[\\`*_~![<]|https?:/g;
const MARKS: readonly Mark[] = [
  { sign: "**", kind: "strong", wholeWords: false },
  { sign: "__", kind: "strong", wholeWords: true },
  { sign: "~~", kind: "deleted", wholeWords: false },
  { sign: "*", kind: "emphasis", wholeWords: false },
  { sign: "_", kind: "emphasis", wholeWords: true },
];

/** Returns the normalized address if its protocol is allowed, otherwise null. */
export function safeAddress(address: string): string | null {
  try {
    const url = new URL(address);
    return PROTOCOLS.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Splits a text into redaction labels and plain text. Parses no other elements. */
export function labelled(text: string): Inline[] {
  const parts: Inline[] = [];
  let from = 0;
  for (let at = text.indexOf("["); at !== -1; at = text.indexOf("[", at + 1)) {
    const label = labelAt(text, at);
    if (label === null) continue;
    if (at > from) parts.push({ kind: "text", text: text.slice(from, at) });
    parts.push(label);
    from = at + label.text.length;
  }
  if (from < text.length) parts.push({ kind: "text", text: text.slice(from) });
  return parts;
}

export function inline(text: string): Inline[] {
  return text.length > MAX_INLINE_CHARACTERS ? labelled(text) : new Reader(text, 0, false).read();
}

function labelAt(text: string, at: number): Extract<Inline, { kind: "label" }> | null {
  LABEL.lastIndex = at;
  const match = LABEL.exec(text);
  return match === null ? null : { kind: "label", text: match[0], entity: match[1]?.toLowerCase().replaceAll("_", " ") ?? "" };
}

/** Parses one text. If `inLink` is true, the text belongs to a link, and links in it are not parsed. */
class Reader {
  private at = 0;
  private plain = "";
  private readonly parts: Inline[] = [];
  /** Opening signs that have no closing sign in the rest of the text. The reader does not search for their closing sign
   * again. */
  private readonly unended = new Set<string>();

  constructor(private readonly text: string, private readonly depth: number, private readonly inLink: boolean) {}

  read(): Inline[] {
    while (this.at < this.text.length) {
      if (!this.readMark()) this.readText();
    }
    this.flush();
    return this.parts;
  }

  private readMark(): boolean {
    const sign = this.text[this.at] ?? "";
    if (sign === "\\") return this.readEscaped();
    if (sign === "`") return this.readCode();
    if (sign === "[") return this.readLabel() || this.readLink(this.at, false);
    if (sign === "!" && this.text[this.at + 1] === "[") return this.readLink(this.at + 1, true);
    if (sign === "<") return this.readAutolink();
    if (sign === "h") return this.readBareAddress();
    return this.readEmphasis();
  }

  /** Adds the text up to the next sign that may begin a mark. */
  private readText(): void {
    NEXT_MARK.lastIndex = this.at + 1;
    const next = NEXT_MARK.exec(this.text)?.index ?? this.text.length;
    this.plain += this.text.slice(this.at, next);
    this.at = next;
  }

  private readEscaped(): boolean {
    const next = this.text[this.at + 1];
    if (next === undefined || !ESCAPED.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  private readCode(): boolean {
    let end = this.at;
    while (this.text[end] === "`") end += 1;
    const fence = this.text.slice(this.at, end);
    const close = this.unended.has(fence) ? -1 : this.endOfCode(fence, end);
    if (close === -1) {
      this.unended.add(fence);
      this.plain += fence;
      this.at = end;
      return true;
    }
    const code = this.text.slice(end, close).replaceAll("\n", " ");
    this.push({ kind: "code", text: code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "" ? code.slice(1, -1) : code }, close + fence.length);
    return true;
  }

  private endOfCode(fence: string, from: number): number {
    for (let at = this.text.indexOf(fence, from); at !== -1; ) {
      let end = at;
      while (this.text[end] === "`") end += 1;
      if (end - at === fence.length) return at;
      at = this.text.indexOf(fence, end);
    }
    return -1;
  }

  private readLabel(): boolean {
    const label = labelAt(this.text, this.at);
    if (label === null) return false;
    this.push(label, this.at + label.text.length);
    return true;
  }

  /** Reads a link or an image. `open` is the index of the opening bracket. An image becomes a link, because the browser
   * would load it from another server. */
  private readLink(open: number, image: boolean): boolean {
    if (this.inLink) return false;
    const near = this.text.slice(open + 1, open + 1 + MAX_LINK_TEXT);
    for (let close = near.indexOf("]("); close !== -1; close = near.indexOf("](", close + 1)) {
      LINK_TARGET.lastIndex = open + 1 + close;
      const match = LINK_TARGET.exec(this.text);
      if (match === null) return false;
      const children = new Reader(near.slice(0, close), this.depth + 1, true).read();
      const href = safeAddress(match[1] ?? "");
      const end = open + 1 + close + match[0].length;
      if (href === null) {
        this.plain += this.text.slice(this.at, end);
        this.at = end;
      } else {
        this.push({ kind: "link", href, image, children }, end);
      }
      return true;
    }
    return false;
  }

  private readAutolink(): boolean {
    const end = this.text.slice(this.at, this.at + MAX_LINK_TEXT).indexOf(">");
    const address = this.text.slice(this.at + 1, this.at + end);
    const href = end < 2 || this.inLink || /\s/.test(address) ? null : safeAddress(address);
    if (href === null) return false;
    this.push({ kind: "link", href, image: false, children: [{ kind: "text", text: address }] }, this.at + end + 1);
    return true;
  }

  private readBareAddress(): boolean {
    BARE_ADDRESS.lastIndex = this.at;
    const match = this.inLink || WORD.test(this.text[this.at - 1] ?? "") ? null : BARE_ADDRESS.exec(this.text);
    if (match === null) return false;
    const address = match[0].includes("(") ? match[0].replace(/[.,;:!?]+$/, "") : match[0].replace(/[.,;:!?)]+$/, "");
    const href = safeAddress(address);
    if (href === null) return false;
    this.push({ kind: "link", href, image: false, children: [{ kind: "text", text: address }] }, this.at + address.length);
    return true;
  }

  private readEmphasis(): boolean {
    const mark = MARKS.find(({ sign }) => this.text.startsWith(sign, this.at));
    if (mark === undefined || this.depth >= MAX_DEPTH) return false;
    const from = this.at + mark.sign.length;
    const isOpen = /\S/.test(this.text[from] ?? " ") && !(mark.wholeWords && WORD.test(this.text[this.at - 1] ?? ""));
    const end = isOpen && !this.unended.has(mark.sign) ? this.endOfMark(mark, from) : -1;
    if (end === -1) {
      if (isOpen) this.unended.add(mark.sign);
      this.plain += mark.sign;
      this.at = from;
      return true;
    }
    const children = new Reader(this.text.slice(from, end), this.depth + 1, this.inLink).read();
    this.push({ kind: mark.kind, children }, end + mark.sign.length);
    return true;
  }

  private endOfMark({ sign, wholeWords }: Mark, from: number): number {
    for (let at = this.text.indexOf(sign, from + 1); at !== -1; ) {
      let end = at;
      while (this.text[end] === sign[0]) end += 1;
      // A single sign, such as `*`, is not closed by a double one, which belongs to an element inside.
      const fits = sign.length === 1 ? end - at !== 2 : true;
      const last = sign.length === 1 ? at : end - sign.length;
      if (fits && /\S/.test(this.text[at - 1] ?? " ") && !(wholeWords && WORD.test(this.text[end] ?? ""))) return last;
      at = this.text.indexOf(sign, end);
    }
    return -1;
  }

  private push(part: Inline, end: number): void {
    this.flush();
    this.parts.push(part);
    this.at = end;
  }

  private flush(): void {
    if (this.plain !== "") this.parts.push({ kind: "text", text: this.plain });
    this.plain = "";
  }
}
