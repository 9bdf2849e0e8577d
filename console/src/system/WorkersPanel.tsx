import { Badge } from "../parts/Badge";
import { type Column, DataTable } from "../parts/DataTable";
import { bytes } from "../parts/format";
import { Panel } from "../parts/Page";
import { RuleName } from "../parts/rules";
import { texts } from "../texts";
import { systemTexts } from "../texts/system";
import type { Worker, Workers } from "./api";
import styles from "./SystemPage.module.css";

/** A process without a heartbeat for longer than this is shown as silent. Processes send a heartbeat at least every 5
 * s. */
const SILENT_AFTER_SECONDS = 15;

/** The processes that send heartbeats. Operators see a list of them, other users only a summary. */
export function WorkersPanel({ workers }: { workers: Workers }) {
  const system = systemTexts;
  return (
    <Panel title={system.workers}>
      {workers.count === undefined ? (
        <p className={styles["text"]}>{system.workersUnknown}</p>
      ) : workers.nodes === undefined ? (
        <p className={styles["text"]}>{system.workersSummary(workers.count, workers.silent ?? 0, workers.revision_lag ?? 0)}</p>
      ) : (
        <DataTable label={system.workers} columns={COLUMNS} rows={workers.nodes} rowId={(worker) => `${worker.kind} ${worker.name}`} />
      )}
    </Panel>
  );
}

const COLUMNS: Column<Worker>[] = [
  {
    id: "name", header: systemTexts.worker,
    cell: ({ row: { original: worker } }) => <RuleName name={worker.name} detail={systemTexts.kindOf(worker.kind)} />,
  },
  {
    id: "state", header: systemTexts.state,
    cell: ({ row: { original: { silent_seconds: seconds } } }) =>
      seconds > SILENT_AFTER_SECONDS
        ? <Badge tone="warning">{systemTexts.silent(Math.round(seconds))}</Badge>
        : <Badge tone="success">{systemTexts.seen}</Badge>,
  },
  {
    id: "revision", header: systemTexts.revision, meta: { hideBelow: "tablet" },
    cell: ({ row: { original: { revision, revision_lag: lag = 0 } } }) =>
      revision === undefined ? texts.none : `${revision.toLocaleString("en")} ${lag > 0 ? systemTexts.behind(lag) : systemTexts.current}`,
  },
  { id: "work", header: systemTexts.work, meta: { hideBelow: "tablet" }, cell: ({ row }) => workOf(row.original) },
];

function workOf({ active, jobs, drain }: Worker): string {
  const system = systemTexts;
  const parts = [
    active !== undefined && system.calls(active),
    drain !== undefined && (drain.connected ? system.waits(bytes(drain.backlog_bytes)) : system.databaseAway),
    jobs === true && system.runsJobs,
  ];
  return parts.filter((part) => part !== false).join(" · ") || texts.none;
}
