import { useRights } from "../api/queries";
import type { Group } from "../groups/api";
import { nameOf } from "../models/api";
import { Badge } from "../parts/Badge";
import { classes } from "../parts/classes";
import { Skeleton } from "../parts/states";
import { texts } from "../texts";
import type { Access, MatrixRow } from "./api";
import type { useAccessChanges } from "./changes";
import styles from "./Matrix.module.css";

const ACCESSES: readonly Access[] = ["ALLOW", "DENY"];
const SKELETON_ROWS = 6;

/** The table: a row for each model, a column for each group. Without `rows` it is loading. */
export function Matrix({ rows, groups, changes, stale, readOnly }: {
  rows: MatrixRow[] | undefined;
  groups: Group[] | undefined;
  changes: ReturnType<typeof useAccessChanges>;
  stale: boolean;
  readOnly: boolean;
}) {
  const { access } = texts;
  const isLoading = rows === undefined || groups === undefined;
  return (
    // It scrolls, so the keyboard must reach it even without fields in it.
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
                <tr key={row.name}>
                  <ModelCell row={row} />
                  {groups.map((group) => <Cell key={group.id} row={row} group={group} changes={changes} readOnly={readOnly} />)}
                </tr>
              ))}
        </tbody>
      </table>
    </div>
  );
}

function ModelCell({ row: { name, model } }: { row: MatrixRow }) {
  const { access } = texts;
  return (
    <th scope="row" className={styles["model"]}>
      <span className={styles["names"]}>
        <span className={styles["line"]}>
          <span className={styles["name"]} title={name}>{model === null ? name : nameOf(model)}</span>
          {model === null && <Badge tone="warning">{access.removed}</Badge>}
          {model?.access === "restricted" && <Badge tone="info">{access.restricted}</Badge>}
        </span>
        {model !== null && <code className={styles["id"]} title={name}>{name}</code>}
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
  const { access } = texts;
  const { administers } = useRights();
  const value = changes.valueOf(group.id, row.name);
  if (!administers) {
    return <td>{value === null ? <span className={styles["none"]}>{texts.none}</span> : <Badge tone={value === "ALLOW" ? "success" : "danger"}>{access.accesses[value]}</Badge>}</td>;
  }
  return (
    <td>
      <select
        aria-label={access.cell(row.name, group.name)} value={value ?? ""} disabled={readOnly} data-value={value ?? undefined}
        className={classes(styles["select"], changes.isEdited(group.id, row.name) && styles["edited"])}
        onChange={({ target }) => changes.edit(group.id, row.name, (target.value || null) as Access | null)}
      >
        <option value="">{access.noRule}</option>
        {ACCESSES.map((option) => <option key={option} value={option} disabled={row.model === null && option !== value}>{access.accesses[option]}</option>)}
      </select>
    </td>
  );
}
