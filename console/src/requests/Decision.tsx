import { Link } from "@tanstack/react-router";
import { Badge, type Tone } from "../parts/Badge";
import { CopyButton } from "../parts/Copy";
import { errorText, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { recordTexts, requestTexts } from "../texts/requests";
import { useRoutingPolicy } from "../routing/api";
import { type AuditEvent, type DlpEvent, type UsageRecordDetails, useAuditEvents, useDlpEvents } from "./api";
import styles from "./RecordDetail.module.css";
import { Entries, Fact, Facts, Section } from "./Section";

const EVENT_TONES: Record<string, Tone> = { redacted: "info", blocked: "danger", pending: "warning", cancelled: "danger", approved: "success" };
const RESULT_TONES: Record<string, Tone> = { failed: "danger", denied: "danger", approved: "success", exceeded: "warning" };

/** The decision of a content filter, a policy rule or another rule (docs/records.md). */
interface RuleEvent {
  kind: string;
  rule_id: string;
  rule_name: string;
  action: string;
  result: string;
  model?: string | null;
}

/** The DLP findings, the decisions of policies and filters, and the audit events of a request. */
export function Decisions({ record }: { record: UsageRecordDetails }) {
  const audit = useAuditEvents(record.request_id);
  return (
    <>
      <DlpEvents record={record} />
      <Section title={requestTexts.decision}>
        {audit.error ? <Failure error={audit.error} /> : <Rules record={record} events={audit.data?.events} />}
      </Section>
      <Section title={recordTexts.audit}>
        {audit.error ? <Failure error={audit.error} /> : <AuditEvents record={record} events={audit.data?.events} />}
      </Section>
    </>
  );
}

function DlpEvents({ record }: { record: UsageRecordDetails }) {
  const { data, error } = useDlpEvents(record);
  return (
    <Section title={requestTexts.events}>
      {error ? <Failure error={error} /> : data === undefined ? <Skeleton width="60%" /> : (
        <>
          <Entries none={requestTexts.noEvents}>
            {data.items.map((event) => <Finding key={event.id} event={event} />)}
          </Entries>
          {data.total > data.items.length && <p className={styles["note"]}>{requestTexts.moreEvents(data.total - data.items.length)}</p>}
        </>
      )}
    </Section>
  );
}

function Finding({ event }: { event: DlpEvent }) {
  return (
    <li className={styles["entry"]}>
      <span className={styles["subject"]}><code>{event.entity_type ?? event.rule_name}</code></span>
      <Badge tone={EVENT_TONES[event.status] ?? "neutral"}>{requestTexts.eventStatusOf(event.status)}</Badge>
      <span className={styles["note"]}>
        {[
          requestTexts.directions[event.direction], event.match_count !== null && requestTexts.matches(event.match_count),
          event.rule_name, event.action !== null && texts.dlpActionOf(event.action),
        ].filter(Boolean).join(" · ")}
      </span>
      {event.rule_id !== null && <CopyButton text={event.rule_id} label={requestTexts.copyRule} />}
    </li>
  );
}

function Rules({ record, events }: { record: UsageRecordDetails; events: AuditEvent[] | undefined }) {
  const policy = record.routing_policy_id;
  const stored = useRoutingPolicy(policy).data;
  if (events === undefined) return <Skeleton width="60%" />;
  const own = events.find((event) => event.id === record.id);
  const rules = (own?.details["rules"] ?? []) as RuleEvent[];
  return (
    <>
      <Entries none={own === undefined ? requestTexts.decisionUnknown : requestTexts.noDecision}>
        {rules.map((rule, at) => (
          <li key={at} className={styles["entry"]}>
            <span className={styles["subject"]}>{rule.rule_name}</span>
            <Badge tone={RESULT_TONES[rule.result] ?? "info"}>{requestTexts.resultOf(rule.result)}</Badge>
            <span className={styles["note"]}>
              {[requestTexts.kindOf(rule.kind), rule.action, rule.model && requestTexts.forModel(rule.model)].filter(Boolean).join(" · ")}
            </span>
            <CopyButton text={rule.rule_id} label={requestTexts.copyRule} />
          </li>
        ))}
      </Entries>
      <Facts>
        <Fact name={recordTexts.routing} copy={policy}>
          {policy !== null && (stored?.name ?? <code>{policy.slice(0, 8)}…</code>)}
        </Fact>
      </Facts>
    </>
  );
}

function AuditEvents({ record, events }: { record: UsageRecordDetails; events: AuditEvent[] | undefined }) {
  if (events === undefined) return <Skeleton width="60%" />;
  if (events.length === 0) return <p className={styles["muted"]}>{recordTexts.noAudit}</p>;
  return (
    <>
      <Facts>
        {events.map((event) => (
          <Fact key={event.id} name={recordTexts.sequence(event.sequence)} copy={event.hash}>
            {event.action} <span className={styles["muted"]}>{event.hash.slice(0, 10)}…</span>
          </Fact>
        ))}
      </Facts>
      <Link to="/audit" search={{ request_id: record.request_id }}>{requestTexts.openAudit}</Link>
    </>
  );
}

function Failure({ error }: { error: Error }) {
  return <p className={styles["muted"]} role="alert">{errorText(error)}</p>;
}
