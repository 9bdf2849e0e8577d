import { BellOff } from "lucide-react";
import { Badge } from "../parts/Badge";
import { Dialog } from "../parts/Dialog";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { alertTexts } from "../texts/alerts";
import { type AlertRule, HISTORY_SIZE, type HistoryRecord, useAlertHistory } from "./api";
import styles from "./HistoryDialog.module.css";
import { conditionOf, valueOf } from "./values";

/** A dialog with the times at which a rule triggered, and whether each notification was delivered. */
export function HistoryDialog({ rule, page, onPage, onClose }: {
  rule: AlertRule | undefined;
  page: number;
  onPage: (page: number) => void;
  onClose: () => void;
}) {
  return (
    <Dialog
      open={rule !== undefined} onClose={onClose} title={rule === undefined ? "" : alertTexts.historyOf(rule.name)}
      text={rule === undefined ? "" : conditionOf(rule)} wide
    >
      {rule !== undefined && <History key={rule.id} rule={rule} page={page} onPage={onPage} />}
    </Dialog>
  );
}

function History({ rule, page, onPage }: { rule: AlertRule; page: number; onPage: (page: number) => void }) {
  const alerts = alertTexts;
  const history = useAlertHistory(rule.id, page);
  const { data } = history;
  if (history.error && data === undefined) return <ErrorState error={history.error} onRetry={() => void history.refetch()} />;
  if (data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
  if (data.total === 0) return <EmptyState icon={BellOff} title={alerts.neverTriggered} />;
  return (
    <>
      <ul className={styles["history"]} aria-label={alerts.history}>
        {data.history.map((record) => <Trigger key={record.id} record={record} rule={rule} />)}
      </ul>
      {(page > 1 || data.total > HISTORY_SIZE) && <Pager name={alerts.history} page={page} size={HISTORY_SIZE} total={data.total} onPage={onPage} />}
    </>
  );
}

function Trigger({ record, rule }: { record: HistoryRecord; rule: AlertRule }) {
  const alerts = alertTexts;
  const isQuiet = !record.webhook_delivered && record.webhook_error === null;
  return (
    <li className={styles["trigger"]}>
      <Time at={record.triggered_at} />
      <span className={styles["value"]}>{alerts.valueOver(valueOf(rule.metric_type, record.metric_value), valueOf(rule.metric_type, record.threshold))}</span>
      <Badge tone={record.webhook_delivered ? "success" : isQuiet ? "neutral" : "danger"}>
        {record.webhook_delivered ? alerts.delivered : isQuiet ? alerts.notSent : alerts.notDelivered}
      </Badge>
      {record.webhook_error !== null && <p className={styles["error"]}>{record.webhook_error}</p>}
    </li>
  );
}
