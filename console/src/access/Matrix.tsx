import { useRights } from "../api/queries";
import type { Group } from "../groups/api";
import { Badge } from "../parts/Badge";
import { classes } from "../parts/classes";
import { Skeleton } from "../parts/states";
import { texts } from "../texts";
import { accessTexts } from "../texts/access";
import type { Access, MatrixRow } from "./api";
import type { useAccessChanges } from "./changes";
import styles from "./Matrix.module.css";

const ACCESSES: readonly Access[] = ["ALLOW", "DENY"];
const SKELETON_ROWS = 6;

/** The table with a row for each model and a column for each group. It shows placeholders while `rows` or `groups` is
 * undefined. */
export function Matrix({ rows, groups, changes, stale, readOnly }: {
  rows: MatrixRow[] | undefined;
  groups: Group[] | undefined;
  changes: ReturnType<typeof useAccessChanges>;
  stale: boolean;
  readOnly: boolean;
}) {
  const access = accessTexts;
  const isLoading = rows === undefined || groups === undefined;
  return (
    // The element scrolls, so it must be focusable even if it contains no fields.
    <div className={styles["frame"]} data-stale={stale || undefined} role="group" aria-label={access.title} tabIndex={0}>
      <table className={styles["table"]} aria-label={access.title} aria-busy={isLoading || stale}>
        <thead>
          <tr>
            <th scope="col" className={styles["corner"]}>{access.model}</th>
            {groups?.map((group) => (
              <th key={group.id} scope="col"><span className={styles["group"]} title={group.name}>{group.name}</span></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {isLoading
            ? Array.from({ length: SKELETON_ROWS }, (_, row) => <tr key={row}><td><Skeleton width="12rem" /></td></tr>)
            : rows.map((row) => (
                <tr key={row.model_id}>
                  <ModelCell row={row} />
                  {groups.map((group) => <Cell key={group.id} row={row} group={group} changes={changes} readOnly={readOnly} />)}
                </tr>
              ))}
        </tbody>
      </table>
    </div>
  );
}

function ModelCell({ row: { model_id: id, display_name: name, access: modelAccess } }: { row: MatrixRow }) {
  const access = accessTexts;
  return (
    <th scope="row" className={styles["model"]}>
      <span className={styles["names"]}>
        <span className={styles["line"]}>
          <span className={styles["name"]} title={id}>{name ?? id}</span>
          {modelAccess === null && <Badge tone="warning">{access.removed}</Badge>}
          {modelAccess === "restricted" && <Badge tone="info">{access.restricted}</Badge>}
        </span>
        {modelAccess !== null && <code className={styles["id"]} title={id}>{id}</code>}
      </span>
    </th>
  );
}

function Cell({ row, group, changes, readOnly }: {
  row: MatrixRow;
  group: Group;
  changes: ReturnType<typeof useAccessChanges>;
  readOnly: boolean;
}) {
  const access = accessTexts;
  const { administers } = useRights();
  const value = changes.valueOf(group.id, row.model_id);
  if (!administers) {
    return <td>{value === null ? <span className={styles["none"]}>{texts.none}</span> : <Badge tone={value === "ALLOW" ? "success" : "danger"}>{access.accesses[value]}</Badge>}</td>;
  }
  return (
    <td>
      <select
        aria-label={access.cell(row.model_id, group.name)} value={value ?? ""} disabled={readOnly} data-value={value ?? undefined}
        className={classes(styles["select"], changes.isEdited(group.id, row.model_id) && styles["edited"])}
        onChange={({ target }) => changes.edit(group.id, row.model_id, (target.value || null) as Access | null)}
      >
        <option value="">{access.noRule}</option>
        {ACCESSES.map((option) => <option key={option} value={option} disabled={row.access === null && option !== value}>{access.accesses[option]}</option>)}
      </select>
    </td>
  );
}
