import { getRouteApi } from "@tanstack/react-router";
import { ScrollText, SearchX } from "lucide-react";
import { useMemo } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { type Column, DataTable } from "../parts/DataTable";
import { CheckboxField } from "../parts/fields";
import { shortTime } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState, errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { RowFailure } from "../parts/useOpenRow";
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";
import { useActorName } from "./actors";
import { type AuditEvent, type AuditFilters, useAuditEvent, useAuditEvents, useFollowedEvents } from "./api";
import styles from "./AuditPage.module.css";
import { ChainDialog } from "./ChainDialog";
import { EventDialog } from "./EventDialog";
import { ExportDialog } from "./ExportDialog";
import { FilterBar } from "./FilterBar";

const route = getRouteApi("/audit");

/** The audit log, newest event first. The URL contains the filters, and the sequence of the open event. If it contains `follow`, the page adds new events
 * continuously. */
export function AuditPage() {
  const { follow = false, event: openSequence, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const events = useAuditEvents(filters);
  const followed = useFollowedEvents(filters, follow && events.isSuccess && !events.isPlaceholderData);
  const { open, close } = useMemo(() => ({
    open: ({ sequence }: AuditEvent) => void navigate({ search: (now) => ({ ...now, event: sequence }) }),
    close: () => void navigate({ search: ({ event: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(open), [open]);
  const rows = events.data?.pages.flatMap((page) => page.events);
  const listed = rows?.find(({ sequence }) => sequence === openSequence);
  const other = useAuditEvent(rows !== undefined && listed === undefined ? openSequence : undefined);
  const opened = listed ?? other.data;
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
      <Panel label={auditTexts.title}>
        {events.error && rows === undefined ? (
          <ErrorState error={events.error} onRetry={() => void events.refetch()} />
        ) : rows?.length === 0 ? (
          <EmptyState icon={isFiltered ? SearchX : ScrollText} title={auditTexts.noneMatch}>
            {isFiltered && <Button onClick={clear}>{texts.clear}</Button>}
          </EmptyState>
        ) : (
          <>
            <DataTable
              label={auditTexts.title} columns={columns} rows={rows} rowId={(event) => event.id} selectedId={opened?.id}
              onOpen={open} stale={events.isPlaceholderData}
            />
            {events.hasNextPage && (
              <div className={styles["more"]}>
                <Button busy={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>{auditTexts.older}</Button>
              </div>
            )}
          </>
        )}
      </Panel>
      <EventDialog event={opened ?? null} onClose={close} />
      <RowFailure failed={other.error !== null && opened === undefined ? other : undefined} onClose={close} />
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

/** Shows who caused the event: the name of a user or of an OAuth client, or the kind of any other actor. */
export function Actor({ event }: { event: AuditEvent }) {
  return <span className={styles["actor"]}>{useActorName(event)}</span>;
}
