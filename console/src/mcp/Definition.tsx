import { mcpTexts } from "../texts/mcp";
import type { Tool } from "./api";
import { differenceOf, shownValue } from "./difference";
import styles from "./mcp.module.css";

/** The definition of a tool, field by field. All texts are shown as plain text. */
export function Definition({ definition }: { definition: Tool["definition"] }) {
  return (
    <dl className={styles["definition"]}>
      {Object.entries(definition).map(([field, value]) => (
        <div key={field}>
          <dt>{mcpTexts.fieldOf(field)}</dt>
          <dd><Value field={field} value={value} /></dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ field, value }: { field: string; value: unknown }) {
  if (value === null || value === undefined) return <span className={styles["absent"]}>{mcpTexts.absent}</span>;
  const isText = typeof value === "string";
  return <pre className={isText ? styles["prose"] : styles["json"]} tabIndex={0} aria-label={mcpTexts.fieldOf(field)}>{shownValue(value)}</pre>;
}

/** The fields that have changed since the approval, with removed and added parts. */
export function Differences({ difference }: { difference: Tool["difference"] }) {
  const mcp = mcpTexts;
  return (
    <dl className={styles["definition"]} aria-label={mcp.changes}>
      {difference.map(({ field, approved, present }) => (
        <div key={field}>
          <dt>{mcp.fieldOf(field)}</dt>
          <dd>
            <pre className={typeof (present ?? approved) === "string" ? styles["prose"] : styles["json"]} tabIndex={0} aria-label={mcp.fieldOf(field)}>
              {differenceOf(textOrEmpty(approved), textOrEmpty(present)).map(({ kind, text }, at) => {
                if (kind === "same") return <span key={at}>{text}</span>;
                const Mark = kind === "removed" ? "del" : "ins";
                return <Mark key={at}><span className={styles["hidden"]}>{kind === "removed" ? mcp.was : mcp.is} </span>{text}</Mark>;
              })}
            </pre>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function textOrEmpty(value: unknown): string {
  return value === null || value === undefined ? "" : shownValue(value);
}
