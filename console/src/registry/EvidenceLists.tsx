import type { ReactNode } from "react";
import { Actor } from "../audit/Actor";
import { Badge } from "../parts/Badge";
import { dollars, wholeNumber } from "../parts/format";
import { Time } from "../parts/Time";
import { useUserName } from "../api/users";
import { texts } from "../texts";
import { approvalTexts } from "../texts/approvals";
import { registryTexts } from "../texts/registry";
import { switchTexts } from "../texts/switches";
import type { Evidence, EvidenceEvent } from "./api";
import styles from "./EntryDialog.module.css";

/** Each list shows this many of its newest items. The downloaded file contains all items. */
const SHOWN_ITEMS = 20;

/** The lists of the evidence, newest first. */
export function EvidenceLists({ evidence: { history, kill_switches: switches, approvals, usage } }: { evidence: Evidence }) {
  const registry = registryTexts;
  return (
    <>
      <List title={registry.history} items={history} itemId={(event) => event.id}>{(event) => <Change event={event} />}</List>
      <List title={registry.switches} items={switches} itemId={(event) => event.id}>{(event) => <Switch event={event} />}</List>
      <List title={registry.approvals} items={approvals} itemId={(approval) => approval.id}>{(approval) => <Decision approval={approval} />}</List>
      <Months usage={usage} />
    </>
  );
}

function List<T>({ title, items, itemId, children }: { title: string; items: readonly T[]; itemId: (item: T) => string; children: (item: T) => ReactNode }) {
  const registry = registryTexts;
  if (items.length === 0) return null;
  const shown = items.slice(-SHOWN_ITEMS).reverse();
  return (
    <section>
      <h3 className={styles["title"]}>{title}</h3>
      <ol className={styles["list"]} aria-label={title}>
        {shown.map((item) => <li key={itemId(item)} className={styles["item"]}>{children(item)}</li>)}
      </ol>
      {items.length > shown.length && <p className={styles["muted"]}>{registry.moreInFile(items.length - shown.length)}</p>}
    </section>
  );
}

function Change({ event }: { event: EvidenceEvent }) {
  const registry = registryTexts;
  const changes = Object.entries((event.details["changes"] ?? {}) as Record<string, { old: unknown; new: unknown }>);
  return (
    <>
      <Time at={event.timestamp} />
      <span className={styles["what"]}>
        {changes.length === 0
          ? registry.actions[event.action] ?? event.action
          : changes.map(([field, change]) => <span key={field}>{registry.changed(registry.fields[field] ?? field, shown(field, change.old), shown(field, change.new))}</span>)}
      </span>
      <Actor event={event} />
    </>
  );
}

/** Returns the label of a field's value. */
function shown(field: string, value: unknown): string {
  const registry = registryTexts;
  const text = typeof value === "string" ? value : value === null ? texts.none : JSON.stringify(value);
  if (field === "validation_status") return (registry.statuses as Record<string, string>)[text] ?? text;
  if (field === "risk_tier") return (registry.tiersShort as Record<string, string>)[text] ?? text;
  return text;
}

function Switch({ event }: { event: EvidenceEvent }) {
  const registry = registryTexts;
  const isOff = event.action === "kill_switch_disable";
  return (
    <>
      <Time at={event.timestamp} />
      <span className={styles["what"]}>
        <Badge tone={isOff ? "danger" : "success"}>{isOff ? registry.stopped : registry.released}</Badge>
        {event.target_model === "*" && <span>{registry.wholeProvider}</span>}
        {event.reason !== null && <span>{(switchTexts.reasons as Record<string, string>)[event.reason] ?? event.reason}</span>}
      </span>
      <Actor event={event} />
    </>
  );
}

function Decision({ approval }: { approval: Evidence["approvals"][number] }) {
  const decider = useUserName(approval.decided_by);
  return (
    <>
      <Time at={approval.created_at} />
      <span className={styles["what"]}>
        <span>{approvalTexts.statuses[approval.status as keyof typeof approvalTexts.statuses] ?? approval.status}</span>
        <span>{approval.rule_name ?? approval.reason}</span>
        {approval.decision_reason !== null && <span className={styles["muted"]}>{approval.decision_reason}</span>}
      </span>
      <span>{decider ?? texts.none}</span>
    </>
  );
}

function Months({ usage }: { usage: Evidence["usage"] }) {
  const registry = registryTexts;
  if (usage.length === 0) return null;
  return (
    <section>
      <h3 className={styles["title"]}>{registry.months}</h3>
      <ol className={styles["list"]} aria-label={registry.months}>
        {[...usage].reverse().map((month) => (
          <li key={month.month} className={styles["item"]}>
            <span>{month.month}</span>
            <span className={styles["what"]}>{registry.monthOf(wholeNumber(month.requests), wholeNumber(month.errors), wholeNumber(month.blocked), wholeNumber(month.flagged))}</span>
            <span>{dollars(Number(month.cost_usd))}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
