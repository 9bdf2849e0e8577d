import { RotateCw, Send } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { useRights } from "../api/queries";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { duration } from "../parts/format";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { webhookTexts } from "../texts/webhooks";
import { type Delivery, eventName, isReplayable, isWaiting, useDeliveries, useReplayDelivery, useTestWebhook, type Webhook } from "./api";
import styles from "./DeliveriesDialog.module.css";

const TONES: Record<Delivery["status"], Tone> = { pending: "info", delivered: "success", failed: "warning", dead_letter: "danger" };

/** The last deliveries of a webhook, with their states and errors. */
export function DeliveriesDialog({ webhook, onClose }: { webhook: Webhook | undefined; onClose: () => void }) {
  return (
    <Dialog
      open={webhook !== undefined} onClose={onClose} title={webhook === undefined ? "" : webhookTexts.deliveriesOf(webhook.name)}
      text={webhookTexts.deliveriesText} wide
    >
      {webhook !== undefined && <Deliveries id={webhook.id} />}
    </Dialog>
  );
}

function Deliveries({ id }: { id: string }) {
  const webhooks = webhookTexts;
  const { administers } = useRights();
  const deliveries = useDeliveries(id);
  const list = useRef<HTMLUListElement>(null);
  const { data } = deliveries;
  return (
    <div className={styles["body"]}>
      {administers && <div><TestButton id={id} /></div>}
      {deliveries.error && data === undefined ? (
        <ErrorState error={deliveries.error} onRetry={() => void deliveries.refetch()} />
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : data.length === 0 ? (
        <EmptyState icon={Send} title={webhooks.noDeliveries} />
      ) : (
        <ul ref={list} className={styles["deliveries"]} aria-label={webhooks.deliveries} tabIndex={-1}>
          {data.map((delivery) => (
            <DeliveryRow
              key={delivery.id} delivery={delivery}
              action={administers && isReplayable(delivery) && <ReplayButton delivery={delivery} onReplayed={() => list.current?.focus()} />}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

function TestButton({ id }: { id: string }) {
  const webhooks = webhookTexts;
  const test = useTestWebhook(id);
  return (
    <Button
      busy={test.isPending}
      onClick={() => report(test.mutateAsync(), (result) =>
          result.success
            ? toast(webhooks.testPassed(result.status_code, "latency_ms" in result ? duration(result.latency_ms) : texts.none))
            : toast(webhooks.testFailed(result.error ?? texts.none), "failed"))}
    >
      <Send aria-hidden />{webhooks.test}
    </Button>
  );
}

/** A button that sends a delivery again. Afterwards the button is removed, so `onReplayed` moves the focus to the
 * list. */
function ReplayButton({ delivery, onReplayed }: { delivery: Delivery; onReplayed: () => void }) {
  const webhooks = webhookTexts;
  const replay = useReplayDelivery(delivery);
  return (
    <Button
      size="small" busy={replay.isPending} aria-label={webhooks.replayOf(eventName(delivery.event_type))}
      onClick={() => report(replay.mutateAsync(), () => {
          toast(webhooks.replayed);
          onReplayed();
        })}
    >
      <RotateCw aria-hidden />{webhooks.replay}
    </Button>
  );
}

function DeliveryRow({ delivery, action }: { delivery: Delivery; action: ReactNode }) {
  const webhooks = webhookTexts;
  const { status, last_attempt_at: lastAt, next_retry_at: nextAt } = delivery;
  return (
    <li className={styles["delivery"]}>
      <div className={styles["line"]}>
        <Badge tone={TONES[status]}>{webhooks.states[status]}</Badge>
        <span className={styles["event"]}>{eventName(delivery.event_type)}</span> <code className={styles["name"]}>{delivery.event_type}</code>
        <span className={styles["facts"]}>
          {webhooks.attempts(delivery.attempt_count)}
          {delivery.response_code !== null && ` · HTTP ${delivery.response_code}`}
          {lastAt !== null && <> · <Time at={lastAt} as="relative" /></>}
          {isWaiting(delivery) && nextAt !== null && <> · {webhooks.next} <Time at={nextAt} /></>}
        </span>
      </div>
      {delivery.error_message !== null && <p className={styles["error"]}>{delivery.error_message}</p>}
      {action}
      <details>
        <summary className={styles["summary"]}>{webhooks.payload}</summary>
        <pre className={styles["payload"]} tabIndex={0}>{delivery.payload}</pre>
      </details>
    </li>
  );
}
