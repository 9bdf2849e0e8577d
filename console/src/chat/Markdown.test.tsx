import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, test } from "vitest";
import { sections } from "./blocks";
import { Markdown, MAX_MARKDOWN_CHARACTERS, PlainText } from "./Markdown";

/** The markup without `svg` icons, without buttons, and without `class` attributes. */
function markup(text: string): string {
  return renderToStaticMarkup(<Markdown text={text} />)
    .replaceAll(/<svg.*?<\/svg>/gs, "")
    .replaceAll(/<button.*?<\/button>/gs, "")
    .replaceAll(/ class="[^"]*"/g, "");
}

const inner = (text: string) => markup(text).replace(/^<div>/, "").replace(/<\/div>$/, "");

describe("blocks", () => {
  test.each([
    ["one\ntwo", "<p>one\ntwo</p>"],
    ["# Title #", '<h3 data-level="1">Title</h3>'],
    ["###### Deep", '<h3 data-level="6">Deep</h3>'],
    ["#no heading", "<p>#no heading</p>"],
    ["---", "<hr/>"],
    ["> one\n> two\n\nafter", "<blockquote><p>one\ntwo</p></blockquote><p>after</p>"],
    ["- a\n- b", "<ul><li>a</li><li>b</li></ul>"],
    ["- a\n\n- b", "<ul><li>a</li><li>b</li></ul>"],
    ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"],
    ["1. a\n   - b\n2. c", '<ol start="1"><li>a<ul><li>b</li></ul></li><li>c</li></ol>'],
    ["text\n- a", "<p>text</p><ul><li>a</li></ul>"],
    ["- a\n\nafter", "<ul><li>a</li></ul><p>after</p>"],
  ])("%j", (text, expected) => expect(inner(text)).toBe(expected));

  test("code keeps its text, even if the closing fence is missing", () => {
    for (const end of ["\n```", ""]) {
      const shown = markup(`\`\`\`python\nprint("**no**")\n\n    # <b>${end}`);
      expect(shown).toContain("<code>print(&quot;**no**&quot;)\n\n    # &lt;b&gt;</code>");
      expect(shown).toContain("<span>python</span>");
      expect(shown).not.toContain("<h3");
    }
  });

  test("a table adds missing cells and drops extra cells", () => {
    const shown = markup("| a | b |\n|---|:-:|\n| 1 | x \\| y | 3 |\n| 2 |");
    expect(shown).toContain('<thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>');
    expect(shown).toContain("<tbody><tr><td>1</td><td>x | y</td></tr><tr><td>2</td><td></td></tr></tbody>");
  });

  test("a line with bars and no divider is a paragraph", () => expect(inner("a | b\nc | d")).toBe("<p>a | b\nc | d</p>"));
});

describe("inline", () => {
  test.each([
    ["**bold** and *soft* and ~~gone~~", "<p><strong>bold</strong> and <em>soft</em> and <del>gone</del></p>"],
    ["**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"],
    ["snake_case_name", "<p>snake_case_name</p>"],
    ["2 * 3 * 4", "<p>2 * 3 * 4</p>"],
    ["**open", "<p>**open</p>"],
    ["`a *b*` and ``c ` d``", "<p><code>a *b*</code> and <code>c ` d</code></p>"],
    ["`open", "<p>`open</p>"],
    [String.raw`\*not\*`, "<p>*not*</p>"],
  ])("%j", (text, expected) => expect(inner(text)).toBe(expected));

  test("redaction labels are marked, even in code", () => {
    expect(inner("Card [CREDIT_CARD_1].")).toMatch(/^<p>Card <mark title="[^"]*credit card[^"]*">\[CREDIT_CARD_1\]<\/mark>\.<\/p>$/);
    expect(markup("`x [EMAIL_2]`")).toContain(">[EMAIL_2]</mark></code>");
    expect(markup("```\n[EMAIL_2]\n```")).toContain(">[EMAIL_2]</mark>");
    expect(renderToStaticMarkup(<PlainText text="**[EMAIL_1]** [x]" />)).toMatch(/>\*\*<mark .*\[EMAIL_1\]<\/mark>\*\* \[x\]</);
  });
});

describe("links", () => {
  const attributes = 'target="_blank" rel="noopener noreferrer nofollow"';

  test.each([
    ["[a](https://example.org/x)", "https://example.org/x", "a"],
    ['[a](https://example.org/x "Title")', "https://example.org/x", "a"],
    ["<https://example.org/y>", "https://example.org/y", "https://example.org/y"],
    ["[wiki](https://example.org/a_(b))", "https://example.org/a_(b)", "wiki"],
    ["[mail](mailto:a@example.org)", "mailto:a@example.org", "mail"],
  ])("%j", (text, href, shown) => expect(inner(text)).toBe(`<p><a href="${href}" title="${href}" ${attributes}>${shown}</a></p>`));

  test("a bare address does not include the period that ends the sentence", () =>
    expect(inner("See https://example.org/x.")).toBe(`<p>See <a href="https://example.org/x" title="https://example.org/x" ${attributes}>https://example.org/x</a>.</p>`));

  test("an image is shown as a link to the image", () => {
    const shown = markup("![pixel](https://evil.example/p.png?q=secret)");
    expect(shown).toContain('href="https://evil.example/p.png?q=secret"');
    expect(shown).toContain("Image: pixel</a>");
    expect(shown).not.toContain("<img");
  });
});

describe("hostile input", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<style>body{display:none}</style>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\nscript:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "[a](//evil.example)",
    "[a](/logout)",
    "[a](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,AAAA)",
    "[![x](https://evil.example/a.png)](javascript:alert(1))",
    '[a](https://example.org/"onmouseover="alert(1))',
    "| <script> |\n|---|\n| <iframe src=//evil.example> |",
    "```<script>\n</code></pre><script>alert(1)</script>\n```",
  ])("%j creates no unsafe element or address", (text) => {
    const shown = markup(text);
    expect(shown).not.toMatch(/<(script|img|style|iframe|object|svg)/i);
    for (const [, href] of shown.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
    expect(shown.replaceAll(/&lt;.*?(&gt;|$)/gs, "").replaceAll(/"[^"]*"/g, "")).not.toMatch(/<[^>]*\son\w+=/);
  });

  // A parser with quadratic time would exceed the timeout of this test.
  test.each(["*", "**a", "_", "`", "[", "![", "[a](", "](", "<", "~~", "> ", "- ", "  - a\n", "|", "a|\n", "|-|\n", "\\", "``` \n", "#", "https://", "[A_", "*a **b ", "`a``b"])(
    "many repetitions of %j are rendered in time",
    (piece) => {
      const text = piece.repeat(MAX_MARKDOWN_CHARACTERS / piece.length);
      expect(markup(text)).toMatch(/^<div>.+<\/div>$/s);
    },
    20_000,
  );

  test("deeply nested text is rendered", () => {
    expect(markup(`${">".repeat(5_000)} deep`)).toContain("deep");
    expect(markup(Array.from({ length: 400 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n"))).toContain("x");
  });

  test("the end of a very long answer is shown without formatting", () => {
    const shown = markup(`${"a ".repeat(MAX_MARKDOWN_CHARACTERS / 2)}**rest** <b>`);
    expect(shown).toContain("<div>**rest** &lt;b&gt;</div>");
  });
});

test("a complete section does not change while the answer is being written", () => {
  const text = "# One\n\nTwo\n\n```\na\n\nb\n```\n\n- c\n\n- d\n\nend";
  const all = sections(text);
  expect(all.join("\n")).toBe(text);
  expect(all.length).toBeGreaterThan(3);
  for (let length = 1; length < text.length; length += 1) {
    const until = sections(text.slice(0, length));
    // Only the last section may still change.
    for (const [at, part] of until.slice(0, -1).entries()) expect(part).toBe(all[at]);
  }
});
