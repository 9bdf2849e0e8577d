import { useRights } from "../api/queries";
import styles from "../access/Matrix.module.css";
import { Badge } from "../parts/Badge";
import { classes } from "../parts/classes";
import { Skeleton } from "../parts/states";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import type { Access, Matrix, MatrixTool, Subject, useEdits } from "./access";
import mcp from "./mcp.module.css";

const ACCESSES: readonly Access[] = ["ALLOW", "DENY"];

/** The table with a row for all tools and for each tool, and a column for each subject. `caller` is the name of the
 * caller whose permitted tools a further column shows. */
export function AccessMatrix({ matrix, edits, caller, stale }: {
  matrix: Matrix | undefined;
  edits: ReturnType<typeof useEdits>;
  caller: string | undefined;
  stale: boolean;
}) {
  if (matrix === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="12rem" /></div>;
  const row = (tool: MatrixTool | null) => (
    <tr key={tool?.name ?? ""}>
      <th scope="row" className={styles["model"]}>
        <span className={styles["line"]}>
          <span className={styles["name"]} title={tool?.name}>{tool?.name ?? mcpTexts.allTools}</span>
          {tool !== null && tool.status !== "approved" && <Badge tone="warning">{mcpTexts.statuses[tool.status]}</Badge>}
          {tool !== null && tool.missing_since !== null && <Badge tone="warning">{mcpTexts.missing}</Badge>}
          {tool !== null && tool.switched_off_at !== null && <Badge tone="danger">{mcpTexts.stopped}</Badge>}
        </span>
      </th>
      {caller !== undefined && <td>{tool !== null && tool.can_call !== null && <Effective tool={tool} />}</td>}
      {matrix.subjects.map((subject) => <Cell key={`${subject.subject_type} ${subject.subject_id}`} tool={tool?.name ?? null} subject={subject} edits={edits} />)}
    </tr>
  );
  return (
    // The element scrolls, so it must be focusable even if it contains no fields.
    <div className={styles["frame"]} data-stale={stale || undefined} role="group" aria-label={mcpTexts.accessTitle} tabIndex={0}>
      <table className={styles["table"]} aria-label={mcpTexts.accessTitle} aria-busy={stale}>
        <thead>
          <tr>
            <th scope="col" className={styles["corner"]}>{mcpTexts.tool}</th>
            {caller !== undefined && <th scope="col"><span className={mcp["subject"]}><span title={caller}>{caller}</span><span className={mcp["kind"]}>{mcpTexts.effective}</span></span></th>}
            {matrix.subjects.map((subject) => (
              <th key={`${subject.subject_type} ${subject.subject_id}`} scope="col">
                <span className={mcp["subject"]}>
                  <span title={nameOf(subject)}>{nameOf(subject)}</span>
                  <span className={mcp["kind"]}>{mcpTexts.subjects[subject.subject_type]}</span>
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{row(null)}{matrix.tools.map(row)}</tbody>
      </table>
    </div>
  );
}

/** Returns the name of a subject, or the beginning of its id if it was removed. */
export function nameOf({ name, subject_id: id }: Subject): string {
  return name ?? `${id.slice(0, 8)}… (${mcpTexts.removedSubject})`;
}

function Effective({ tool: { can_call: canCall, obstacle } }: { tool: MatrixTool }) {
  return <Badge tone={canCall === true ? "success" : "danger"}>{obstacle === null ? mcpTexts.canCall : mcpTexts.obstacles[obstacle]}</Badge>;
}

function Cell({ tool, subject, edits }: { tool: string | null; subject: Subject; edits: ReturnType<typeof useEdits> }) {
  const { administers } = useRights();
  const value = edits.valueOf(subject, tool);
  if (!administers) {
    return <td>{value === null ? <span className={styles["none"]}>{texts.none}</span> : <Badge tone={value === "ALLOW" ? "success" : "danger"}>{mcpTexts.rules[value]}</Badge>}</td>;
  }
  return (
    <td>
      <select
        aria-label={mcpTexts.cell(tool ?? mcpTexts.allTools, nameOf(subject))} value={value ?? ""} disabled={edits.save.isPending}
        data-value={value ?? undefined} className={classes(styles["select"], edits.isEdited(subject, tool) && styles["edited"])}
        onChange={({ target }) => edits.edit(subject, tool, (target.value || null) as Access | null)}
      >
        <option value="">{mcpTexts.noRule}</option>
        {ACCESSES.map((access) => <option key={access} value={access} disabled={subject.name === null && access !== value}>{mcpTexts.rules[access]}</option>)}
      </select>
    </td>
  );
}
