import { Badge } from "../parts/Badge";
import { Panel } from "../parts/Page";
import { ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { switchTexts } from "../texts/switches";
import { isPending, type RecentChange, usePropagation } from "./api";
import styles from "./Changes.module.css";

/** The latest changes of kill switches, with the number of workers and outposts that have applied each change. */
export function Changes() {
  const switches = switchTexts;
  const report = usePropagation();
  const changes = report.data?.changes ?? [];
  return (
    <Panel title={switches.changes}>
      {report.error && report.data === undefined ? (
        <ErrorState error={report.error} onRetry={() => void report.refetch()} />
      ) : changes.length === 0 ? (
        <p className={styles["none"]}>{switches.noChanges}</p>
      ) : (
        <ul className={styles["changes"]} aria-live="polite">
          {changes.map((change) => <Change key={change.revision} change={change} />)}
        </ul>
      )}
    </Panel>
  );
}

function Change({ change }: { change: RecentChange }) {
  const switches = switchTexts;
  const outposts = change.outposts.filter((outpost) => outpost.confirmed_at !== null).length;
  const more = change.target_count - change.targets.length;
  return (
    <li className={styles["change"]}>
      <span className={styles["targets"]} title={change.targets.join("\n")}>
        {change.targets.slice(0, 3).join(", ")}{change.targets.length > 3 || more > 0 ? ` ${switches.more(change.target_count - Math.min(3, change.targets.length))}` : ""}
      </span>
      <span className={styles["at"]}><Time at={change.at} as="relative" /></span>
      <Badge tone={isPending(change) ? "warning" : "success"}>
        {switches.confirmed(change.confirmed, change.total)}
        {change.outposts.length > 0 && ` · ${switches.outposts(outposts, change.outposts.length)}`}
      </Badge>
      {change.pending.length > 0 && <span className={styles["pending"]}>{switches.pending(change.pending.join(", "))}</span>}
    </li>
  );
}
