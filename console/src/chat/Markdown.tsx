/** Renders Markdown as React nodes. HTML in the text is shown as text, and images are shown as links, so the text
 * cannot add elements of its own to the page. */
import { ExternalLink } from "lucide-react";
import { Fragment, memo, type ReactNode, useMemo } from "react";
import { CopyButton } from "../parts/Copy";
import { chatTexts } from "../texts/chat";
import { type Block, blocks, sections } from "./blocks";
import { type Inline, inline, labelled } from "./inline";
import styles from "./Markdown.module.css";

/** The text after this many characters is shown without formatting. */
export const MAX_MARKDOWN_CHARACTERS = 100_000;

export function Markdown({ text }: { text: string }) {
  const formatted = text.slice(0, MAX_MARKDOWN_CHARACTERS);
  const rest = text.slice(MAX_MARKDOWN_CHARACTERS);
  const parts = useMemo(() => sections(formatted), [formatted]);
  return (
    <div className={styles["markdown"]}>
      {parts.map((part, at) => <Section key={at} text={part} />)}
      {rest !== "" && <div className={styles["rest"]}>{nodes(labelled(rest))}</div>}
    </div>
  );
}

/** A text without formatting, in which redaction labels are marked. */
export function PlainText({ text }: { text: string }) {
  return <div className={styles["plain"]}>{nodes(labelled(text))}</div>;
}

const Section = memo(function Section({ text }: { text: string }) {
  return <Blocks blocks={blocks(text)} />;
});

function Blocks({ blocks: all }: { blocks: readonly Block[] }) {
  return all.map((block, at) => <Fragment key={at}>{blockNode(block)}</Fragment>);
}

function blockNode(block: Block): ReactNode {
  switch (block.kind) {
    case "paragraph": return <p>{nodes(inline(block.text))}</p>;
    case "plain": return <div className={styles["rest"]}>{nodes(labelled(block.text))}</div>;
    // All headings are `h3`: an answer can begin at any level, and the page has headings above it.
    case "heading": return <h3 data-level={block.level}>{nodes(inline(block.text))}</h3>;
    case "code": return <CodeBlock language={block.language} text={block.text} />;
    case "quote": return <blockquote><Blocks blocks={block.blocks} /></blockquote>;
    case "rule": return <hr />;
    case "list": return <List start={block.start} items={block.items} />;
    case "table": return <Table head={block.head} rows={block.rows} />;
  }
}

function List({ start, items }: { start: number | null; items: readonly Block[][] }) {
  const entries = items.map((item, at) => {
    const [first, ...rest] = item;
    // The first paragraph of an item is rendered without a `p` element, so that the list is tight.
    return <li key={at}>{first?.kind === "paragraph" ? nodes(inline(first.text)) : first && blockNode(first)}<Blocks blocks={rest} /></li>;
  });
  return start === null ? <ul>{entries}</ul> : <ol start={start}>{entries}</ol>;
}

function Table({ head, rows }: { head: readonly string[]; rows: readonly string[][] }) {
  return (
    <div className={styles["scroll"]} role="group" aria-label={chatTexts.table} tabIndex={0}>
      <table>
        <thead><tr>{head.map((cell, at) => <th key={at} scope="col">{nodes(inline(cell))}</th>)}</tr></thead>
        <tbody>
          {rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{nodes(inline(cell))}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}

function CodeBlock({ language, text }: { language: string; text: string }) {
  return (
    <div className={styles["code"]}>
      <div className={styles["codeHead"]}>
        <span>{language || chatTexts.code}</span>
        <CopyButton text={text} label={chatTexts.copyCode} />
      </div>
      <pre tabIndex={0} aria-label={language || chatTexts.code} role="group"><code>{nodes(labelled(text))}</code></pre>
    </div>
  );
}

function nodes(parts: readonly Inline[]): ReactNode {
  return parts.map((part, at) => <Fragment key={at}>{node(part)}</Fragment>);
}

function node(part: Inline): ReactNode {
  switch (part.kind) {
    case "text": return part.text;
    case "code": return <code>{nodes(labelled(part.text))}</code>;
    case "label": return <mark className={styles["label"]} title={chatTexts.labelTitle(part.entity)}>{part.text}</mark>;
    case "strong": return <strong>{nodes(part.children)}</strong>;
    case "emphasis": return <em>{nodes(part.children)}</em>;
    case "deleted": return <del>{nodes(part.children)}</del>;
    case "link": return (
      <a href={part.href} title={part.href} target="_blank" rel="noopener noreferrer nofollow">
        {part.image && chatTexts.image}{nodes(part.children)}
        <ExternalLink aria-label={chatTexts.external} role="img" size={12} />
      </a>
    );
  }
}
