import { Fragment } from "react";
import { trialStyles } from "./Trial";

interface Span {
  start: number;
  end: number;
}

/** A text in which spans are marked. Their offsets count Unicode code points. Spans can overlap. */
export function Marked({ label, text, spans }: { label: string; text: string; spans: readonly Span[] }) {
  const points = [...text];
  const parts: { from: number; to: number; marked: boolean }[] = [];
  let at = 0;
  for (const { start, end } of [...spans].sort((one, other) => one.start - other.start)) {
    if (start > at) parts.push({ from: at, to: start, marked: false });
    if (end > at) parts.push({ from: Math.max(start, at), to: end, marked: true });
    at = Math.max(at, end);
  }
  if (at < points.length) parts.push({ from: at, to: points.length, marked: false });
  return (
    <div className={trialStyles["marked"]} role="group" aria-label={label} tabIndex={0}>
      {parts.map(({ from, to, marked }) => {
        const part = points.slice(from, to).join("");
        return marked ? <mark key={from}>{part}</mark> : <Fragment key={from}>{part}</Fragment>;
      })}
    </div>
  );
}
