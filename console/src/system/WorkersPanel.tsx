import { Badge } from "../parts/Badge";
import { type Column, DataTable } from "../parts/DataTable";
import { bytes } from "../parts/format";
import { Panel } from "../parts/Page";
import { RuleName } from "../parts/rules";
import { texts } from "../texts";
import type { Worker, Workers } from "./api";
import styles from "./SystemPage.module.css";

/** The longest interval between two heartbeats is 5 s. */
const SILENT_AFTER_SECONDS = 15;

/** The processes that send heartbeats. Operators see each; others how many there are. */
export function WorkersPanel({ workers }: { workers: Workers }) {
  const { system } = texts;
  return (
    <Panel title={system.workers}>
      {workers.count === undefined ? (
        <p className={styles["text"]}>{system.workersUnknown}</p>
      ) : workers.nodes === undefined ? (
        <p className={styles["text"]}>{system.workersSummary(workers.count, workers.silent ?? 0, workers.revision_lag ?? 0)}</p>
      ) : (
        <DataTable label={system.workers} columns={COLUMNS} rows={workers.nodes} idOf={(worker) => `${worker.kind} ${worker.name}`} />
      )}
    </Panel>
  );
}

const COLUMNS: Column<Worker>[] = [
  {
    id: "name", header: texts.system.worker,
    cell: ({ row: { original: worker } }) => <RuleName name={worker.name} detail={texts.system.kindOf(worker.kind)} />,
  },
  {
    id: "state", header: texts.system.state,
    cell: ({ row: { original: { silent_seconds: seconds } } }) =>
      seconds > SILENT_AFTER_SECONDS
        ? <Badge tone="warning">{texts.system.silent(Math.round(seconds))}</Badge>
        : <Badge tone="success">{texts.system.seen}</Badge>,
  },
  {
    id: "revision", header: texts.system.revision, meta: { hideBelow: "tablet" },
    cell: ({ row: { original: { revision, revision_lag: lag = 0 } } }) =>
      revision === undefined ? texts.none : `${revision.toLocaleString("en")} ${lag > 0 ? texts.system.behind(lag) : texts.system.current}`,
  },
  { id: "work", header: texts.system.work, meta: { hideBelow: "tablet" }, cell: ({ row }) => workOf(row.original) },
];

function workOf({ active, jobs, drain }: Worker): string {
  const { system } = texts;
  const parts = [
    active !== undefined && system.calls(active),
    drain !== undefined && (drain.connected ? system.waits(bytes(drain.backlog_bytes)) : system.databaseAway),
    jobs === true && system.runsJobs,
  ];
  return parts.filter((part) => part !== false).join(" · ") || texts.none;
}
