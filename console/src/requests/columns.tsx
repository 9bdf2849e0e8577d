import type { Column } from "../parts/DataTable";
import { count, dollars, duration, shortTime } from "../parts/format";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import type { UsageRecord } from "./api";
import styles from "./columns.module.css";
import { DlpBadge, StatusBadge } from "./status";

/** Returns the columns of a list of records. The button in the first cell of a row calls `onOpen`. */
export function recordColumns(onOpen: (record: UsageRecord) => void): Column<UsageRecord>[] {
  return [
    { id: "time", header: texts.requests.time, meta: { sort: "-timestamp" }, cell: ({ row }) => <Opener record={row.original} onOpen={onOpen} /> },
    { id: "status", header: texts.requests.status, cell: ({ row }) => <StatusBadge status={row.original.status} /> },
    { id: "model", header: texts.requests.model, meta: { width: "32%" }, cell: ({ row }) => <Model record={row.original} /> },
    { id: "dlp", header: texts.requests.dlp, meta: { hideBelow: "tablet" }, cell: ({ row }) => <DlpBadge action={row.original.dlp_action} /> },
    { id: "tokens", header: texts.requests.tokens, meta: { align: "end", sort: "-tokens", hideBelow: "tablet" }, cell: ({ row }) => <Tokens record={row.original} /> },
    { id: "cost", header: texts.requests.cost, meta: { align: "end", sort: "-cost_usd", hideBelow: "tablet" }, cell: ({ row }) => dollars(row.original.cost_usd) },
    { id: "latency", header: texts.requests.latency, meta: { align: "end", sort: "-latency_ms", hideBelow: "desk" }, cell: ({ row }) => duration(row.original.latency_ms) },
  ];
}

export function modelName(record: UsageRecord): string {
  if (record.model_id !== null) return record.model_id;
  return record.requested_model ?? texts.requests.none;
}

function Opener({ record, onOpen }: { record: UsageRecord; onOpen: (record: UsageRecord) => void }) {
  const { open } = texts.requests;
  return (
    <button
      type="button" className={styles["opener"]} data-open={record.id}
      aria-label={open(modelName(record), shortTime(record.timestamp))} onClick={() => onOpen(record)}
    >
      <Time at={record.timestamp} />
    </button>
  );
}

function Model({ record }: { record: UsageRecord }) {
  return (
    <span className={styles["model"]}>
      {record.provider !== null && <span className={styles["provider"]}>{record.provider}</span>}
      <span className={record.model_id === null ? styles["unknown"] : styles["id"]} title={modelName(record)}>{modelName(record)}</span>
    </span>
  );
}

function Tokens({ record }: { record: UsageRecord }) {
  if (record.input_tokens === null && record.output_tokens === null) return texts.none;
  return <>{count(record.input_tokens)}<span className={styles["arrow"]} aria-hidden> → </span>{count(record.output_tokens)}</>;
}
