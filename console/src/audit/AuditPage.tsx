import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";
import { Badge } from "../parts/Badge";
import type { Column } from "../parts/DataTable";
import { CheckboxField } from "../parts/fields";
import { shortTime } from "../parts/format";
import { Page } from "../parts/Page";
import { errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";
import { Actor } from "./Actor";
import { type AuditEvent, type AuditFilters, useAuditEvents, useFollowedEvents } from "./api";
import styles from "./AuditPage.module.css";
import { ChainDialog } from "./ChainDialog";
import { EventDialog } from "./EventDialog";
import { EventList } from "./EventList";
import { ExportDialog } from "./ExportDialog";
import { FilterBar } from "./FilterBar";

const route = getRouteApi("/audit");

/** The audit log, newest event first. The URL contains the filters, and the sequence of the open event. If it contains
 * `follow`, the page adds new events continuously. */
export function AuditPage() {
  const { follow = false, event: openSequence, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const events = useAuditEvents(filters);
  const followed = useFollowedEvents(filters, follow && events.isSuccess && !events.isPlaceholderData);
  const openEvent = useCallback((sequence: number | undefined) => void navigate({ search: (now) => ({ ...now, event: sequence }) }), [navigate]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: AuditFilters) => void navigate({ search: (now) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: follow ? { follow } : {} });

  return (
    <Page
      wide
      title={auditTexts.title}
      actions={<><FollowSwitch on={follow} error={followed.error} onChange={(on) => void navigate({ search: on ? { ...filters, follow: on } : filters })} /><ChainDialog /><ExportDialog filters={filters} /></>}
      filterBar={<FilterBar filters={filters} isFiltered={isFiltered} onChange={updateFilters} onClear={clear} />}
    >
      <EventList
        label={auditTexts.title} list={events} columnsOf={columnsOf} openSequence={openSequence} onOpen={openEvent}
        dialogOf={(event, close) => <EventDialog event={event} onClose={close} />} empty={auditTexts.noneMatch} older={auditTexts.older}
        onClear={isFiltered ? clear : undefined}
      />
    </Page>
  );
}

function FollowSwitch({ on, error, onChange }: { on: boolean; error: Error | null; onChange: (on: boolean) => void }) {
  return (
    <CheckboxField
      role="switch" label={auditTexts.follow} checked={on} onChange={({ target }) => onChange(target.checked)}
      fault={on && error !== null ? auditTexts.followFailed(errorText(error)) : undefined}
    />
  );
}

function columnsOf(open: (event: AuditEvent) => void): Column<AuditEvent>[] {
  return [
    {
      id: "time", header: auditTexts.time, meta: { width: "9.5rem" },
      cell: ({ row: { original } }) => (
        <button type="button" className={styles["open"]} data-open={original.id} onClick={() => open(original)} aria-label={auditTexts.open(shortTime(original.timestamp), original.action)}>
          <Time at={original.timestamp} />
        </button>
      ),
    },
    { id: "action", header: auditTexts.action, cell: ({ row }) => <code className={styles["action"]}>{row.original.action}</code> },
    { id: "actor", header: auditTexts.actor, cell: ({ row }) => <Actor event={row.original} /> },
    {
      id: "resource", header: auditTexts.resource, meta: { hideBelow: "tablet" },
      cell: ({ row: { original } }) => original.resource_type ?? texts.none,
    },
    {
      id: "outcome", header: auditTexts.outcome, meta: { hideBelow: "tablet" },
      cell: ({ row: { original } }) => <Badge tone={original.outcome === "success" ? "success" : "warning"}>{texts.statusOf(original.outcome)}</Badge>,
    },
    { id: "sequence", header: auditTexts.sequence, meta: { align: "end", hideBelow: "desk" }, cell: ({ row }) => row.original.sequence.toLocaleString("en") },
  ];
}
