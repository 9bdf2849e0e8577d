import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronUp, FileSearch, X } from "lucide-react";
import { useEffect, useRef } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { useClientName } from "../budgets/scopes";
import { Button } from "../parts/Button";
import { dollars, wholeNumber } from "../parts/format";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { recordTexts, requestTexts } from "../texts/requests";
import { type UsageRecord, type UsageRecordDetails, useRecord } from "./api";
import { Attempts } from "./Attempts";
import { useKeyName } from "./choosing";
import { modelName } from "./columns";
import { Decisions } from "./Decision";
import styles from "./RecordDetail.module.css";
import { Fact, Facts, Section } from "./Section";
import { DlpBadge, StatusBadge } from "./status";
import { Timing } from "./Timing";

/** The details of a record beside the list. J opens the next record, K the previous one, and Escape closes the
 * details. */
export function RecordDetail({ id, newer, older, onOpen, onClose }: {
  id: string;
  newer: UsageRecord | undefined;
  older: UsageRecord | undefined;
  onOpen: (record: UsageRecord) => void;
  onClose: () => void;
}) {
  const record = useRecord(id);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      const { target, key } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (target instanceof Element && target.closest("input, select, textarea, [role=menu], [role=dialog]") !== null) return;
      const next = { j: older, k: newer }[key];
      if (key === "Escape") onClose();
      else if (next !== undefined) onOpen(next);
      else return;
      event.preventDefault();
    }
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [older, newer, onOpen, onClose]);

  return (
    <aside className={styles["panel"]} ref={panel} tabIndex={-1} aria-label={recordTexts.title}>
      <header className={styles["head"]}>
        <h2 className={styles["title"]}>{record.data ? modelName(record.data) : recordTexts.title}</h2>
        <Button look="quiet" size="icon" aria-label={recordTexts.previous} disabled={newer === undefined} onClick={() => newer && onOpen(newer)}><ChevronUp aria-hidden /></Button>
        <Button look="quiet" size="icon" aria-label={recordTexts.next} disabled={older === undefined} onClick={() => older && onOpen(older)}><ChevronDown aria-hidden /></Button>
        <Button look="quiet" size="icon" aria-label={recordTexts.close} onClick={onClose}><X aria-hidden /></Button>
      </header>
      {record.error ? (
        <ErrorState error={record.error} onRetry={() => void record.refetch()} />
      ) : record.data === undefined ? (
        <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="60%" /><Skeleton width="80%" /><Skeleton width="45%" /></div>
      ) : record.data === null ? (
        <EmptyState icon={FileSearch} title={recordTexts.gone} text={recordTexts.goneText} />
      ) : (
        <Details record={record.data} />
      )}
    </aside>
  );
}

function Details({ record }: { record: UsageRecordDetails }) {
  const request = recordTexts;
  const { seesAll } = useRights();
  return (
    <>
      <div className={styles["badges"]}>
        <StatusBadge status={record.status} />
        <DlpBadge action={record.dlp_action} />
        <span className={styles["received"]}><Time at={record.timestamp} /></span>
      </div>
      <Section title={request.call}>
        <Facts>
          <Fact name={request.requestId} copy={record.request_id}><code>{record.request_id}</code></Fact>
          <Fact name={requestTexts.errorCode}>{record.error_code !== null && <code>{record.error_code}</code>}</Fact>
          <Fact name={request.provider}>{record.provider}</Fact>
          <Fact name={request.model}>{record.model_id}</Fact>
          <Fact name={requestTexts.alias}>{record.model_alias}</Fact>
          {record.requested_model !== record.model_id && <Fact name={request.requestedModel}>{record.requested_model}</Fact>}
          <Fact name={request.stream}>{record.stream ? request.yes : request.no}</Fact>
          {record.fallbacks > 0 && <Fact name={request.fallbacks}>{record.fallbacks}</Fact>}
          <Fact name={requestTexts.cache}>{record.cache !== null && (requestTexts.cacheOf[record.cache] ?? record.cache)}</Fact>
          {record.dlp_action !== null && <Fact name={request.dlp}>{texts.dlpActionOf(record.dlp_action)}</Fact>}
        </Facts>
      </Section>
      <Section title={request.timing}><Facts><Timing record={record} /></Facts></Section>
      <Attempts record={record} />
      {seesAll && <Decisions record={record} />}
      <Section title={request.usage}>
        <Facts>
          <Fact name={request.input}>{wholeNumber(record.input_tokens)}</Fact>
          <Fact name={request.output}>{wholeNumber(record.output_tokens)}</Fact>
          {record.cached_tokens !== null && record.cached_tokens > 0 && <Fact name={request.cached}>{wholeNumber(record.cached_tokens)}</Fact>}
          <Fact name={request.cost}>{record.cost_usd === null ? <span className={styles["muted"]}>{request.unpriced}</span> : dollars(record.cost_usd)}</Fact>
        </Facts>
      </Section>
      <Section title={request.caller}>
        <Facts>
          <User id={record.user_id} />
          <Key id={record.api_key_id} />
          <Client id={record.client_id} />
          <Fact name={request.endUser}>{record.end_user}</Fact>
          <Fact name={request.tags}>{record.tags.join(", ")}</Fact>
        </Facts>
      </Section>
    </>
  );
}

function User({ id }: { id: string | null }) {
  const name = useUserName(id);
  return (
    <Fact name={recordTexts.user}>
      {id !== null && <Link to="/requests" search={{ user: id, period: "all" }} title={recordTexts.sameUser}>{name}</Link>}
    </Fact>
  );
}

function Key({ id }: { id: string | null }) {
  const name = useKeyName(id);
  return (
    <Fact name={recordTexts.key} copy={id}>
      {id !== null && <Link to="/requests" search={{ key: id, period: "all" }} title={recordTexts.sameKey}>{name}</Link>}
    </Fact>
  );
}

function Client({ id }: { id: string | null }) {
  const { seesAll } = useRights();
  const name = useClientName(seesAll ? id : null);
  return <Fact name={recordTexts.client} copy={id}>{id !== null && (name ?? <code>{id.slice(0, 8)}…</code>)}</Fact>;
}
