import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronUp, FileSearch, X } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/Copy";
import { dollars, wholeNumber } from "../parts/format";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { type UsageRecord, useAuditEvents, useRecord } from "./api";
import { modelName } from "./columns";
import styles from "./RecordDetail.module.css";
import { DlpBadge, StatusBadge } from "./status";
import { Timing } from "./Timing";

/** One record beside the list. J and K go to the next and the previous one, Escape closes it. */
export function RecordDetail({ id, listed, newer, older, onOpen, onClose }: {
  id: string;
  listed: UsageRecord | undefined;
  newer: UsageRecord | undefined;
  older: UsageRecord | undefined;
  onOpen: (record: UsageRecord) => void;
  onClose: () => void;
}) {
  const record = useRecord(id, listed);
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
    <aside className={styles["panel"]} ref={panel} tabIndex={-1} aria-label={texts.request.title}>
      <header className={styles["head"]}>
        <h2 className={styles["title"]}>{record.data ? modelName(record.data) : texts.request.title}</h2>
        <Button look="quiet" size="icon" aria-label={texts.request.previous} disabled={newer === undefined} onClick={() => newer && onOpen(newer)}><ChevronUp aria-hidden /></Button>
        <Button look="quiet" size="icon" aria-label={texts.request.next} disabled={older === undefined} onClick={() => older && onOpen(older)}><ChevronDown aria-hidden /></Button>
        <Button look="quiet" size="icon" aria-label={texts.request.close} onClick={onClose}><X aria-hidden /></Button>
      </header>
      {record.error ? (
        <ErrorState error={record.error} onRetry={() => void record.refetch()} />
      ) : record.data === undefined ? (
        <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="60%" /><Skeleton width="80%" /><Skeleton width="45%" /></div>
      ) : record.data === null ? (
        <EmptyState icon={FileSearch} title={texts.request.gone} text={texts.request.goneText} />
      ) : (
        <Details record={record.data} />
      )}
    </aside>
  );
}

function Details({ record }: { record: UsageRecord }) {
  const { request } = texts;
  const { seesAll } = useRights();
  return (
    <>
      <div className={styles["badges"]}>
        <StatusBadge status={record.status} />
        <DlpBadge action={record.dlp_action} />
        <span className={styles["received"]}><Time at={record.timestamp} /></span>
      </div>
      <Section title={request.call}>
        <Fact name={request.requestId} copy={record.request_id}><code>{record.request_id}</code></Fact>
        <Fact name={request.provider}>{record.provider}</Fact>
        <Fact name={request.model}>{record.model_id}</Fact>
        {record.requested_model !== record.model_id && <Fact name={request.requestedModel}>{record.requested_model}</Fact>}
        <Fact name={request.stream}>{record.stream ? request.yes : request.no}</Fact>
        {record.fallbacks > 0 && <Fact name={request.fallbacks}>{record.fallbacks}</Fact>}
        {record.dlp_action !== null && <Fact name={request.dlp}>{texts.dlpActionOf(record.dlp_action)}</Fact>}
      </Section>
      <Section title={request.timing}><Timing record={record} /></Section>
      <Section title={request.usage}>
        <Fact name={request.input}>{wholeNumber(record.input_tokens)}</Fact>
        <Fact name={request.output}>{wholeNumber(record.output_tokens)}</Fact>
        {record.cached_tokens !== null && record.cached_tokens > 0 && <Fact name={request.cached}>{wholeNumber(record.cached_tokens)}</Fact>}
        <Fact name={request.cost}>{record.cost_usd === null ? <span className={styles["muted"]}>{request.unpriced}</span> : dollars(record.cost_usd)}</Fact>
      </Section>
      <Section title={request.caller}>
        <User id={record.user_id} />
        <Fact name={request.key} copy={record.api_key_id}>
          {record.api_key_id !== null && (
            <Link to="/requests" search={{ key: record.api_key_id, period: "all" }} title={request.sameKey}>
              <code>{record.api_key_id.slice(0, 8)}…</code>
            </Link>
          )}
        </Fact>
        <Fact name={request.client} copy={record.client_id}>{record.client_id && <code>{record.client_id.slice(0, 8)}…</code>}</Fact>
        <Fact name={request.endUser}>{record.end_user}</Fact>
        <Fact name={request.tags}>{record.tags.join(", ")}</Fact>
      </Section>
      {seesAll && <Audit requestId={record.request_id} />}
    </>
  );
}

function User({ id }: { id: string | null }) {
  const name = useUserName(id);
  return (
    <Fact name={texts.request.user}>
      {id !== null && <Link to="/requests" search={{ user: id, period: "all" }} title={texts.request.sameUser}>{name}</Link>}
    </Fact>
  );
}

function Audit({ requestId }: { requestId: string }) {
  const events = useAuditEvents(requestId);
  return (
    <Section title={texts.request.audit}>
      {events.error && <p className={styles["muted"]} role="alert">{events.error.message}</p>}
      {events.data?.events.length === 0 && <p className={styles["muted"]}>{texts.request.noAudit}</p>}
      {events.data?.events.map((event) => (
        <Fact key={event.id} name={texts.request.sequence(event.sequence)} copy={event.hash}>
          {event.action} <span className={styles["muted"]}>{event.hash.slice(0, 10)}…</span>
        </Fact>
      ))}
    </Section>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles["section"]}>
      <h3 className={styles["name"]}>{title}</h3>
      <dl className={styles["facts"]}>{children}</dl>
    </section>
  );
}

/** A named value; nothing where there is none. */
function Fact({ name, copy, children }: { name: string; copy?: string | null; children: ReactNode }) {
  if (children === null || children === undefined || children === "" || children === false) return null;
  return (
    <div className={styles["fact"]}>
      <dt>{name}</dt>
      <dd>
        <span className={styles["value"]}>{children}</span>
        {copy !== undefined && copy !== null && <CopyButton text={copy} label={`${texts.copy} ${name}`} />}
      </dd>
    </div>
  );
}
