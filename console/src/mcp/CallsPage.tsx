import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";
import { Actor } from "../audit/Actor";
import { useActorChoices, useChosenActor } from "../audit/actors";
import { type AuditEvent, useAuditEvents } from "../audit/api";
import { EventList } from "../audit/EventList";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import type { Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter } from "../parts/filters";
import { duration, shortTime } from "../parts/format";
import { Page } from "../parts/Page";
import { RuleName } from "../parts/rules";
import { SearchFilter } from "../parts/SearchFilter";
import { Time } from "../parts/Time";
import { TimeRange } from "../parts/TimeRange";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { CallDialog } from "./CallDialog";
import { callOf } from "./calls";
import { OUTCOMES } from "./choices";
import { McpViews } from "./McpViews";
import { ServerFilter } from "./ServerFilter";

const route = getRouteApi("/mcp-servers/calls");

const ACTION = "mcp.tool_call";
const TONES: Record<string, Tone> = { success: "success", error: "danger", refused: "warning" };

interface CallFilters {
  server?: string | undefined;
  tool?: string | undefined;
  actor_id?: string | undefined;
  outcome?: (typeof OUTCOMES)[number] | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** The calls of tools, newest first. They are audit events. A dialog shows the call with the sequence in the URL. */
export function CallsPage() {
  const mcp = mcpTexts;
  const { event: openSequence, server, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const events = useAuditEvents({ ...filters, ...(server !== undefined && { resource_id: server }), action: ACTION });
  const openEvent = useCallback((sequence: number | undefined) => void navigate({ search: (now) => ({ ...now, event: sequence }) }), [navigate]);
  const actor = useChosenActor(filters.actor_id);
  const isFiltered = server !== undefined || Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: CallFilters) => void navigate({ search: (now) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      wide title={mcp.callsTitle} views={<McpViews />}
      filterBar={
        <>
          <TimeRange fromLabel={mcp.from} toLabel={mcp.to} from={filters.from} to={filters.to} onChange={updateFilters} />
          <ServerFilter value={server} onChange={(chosen) => updateFilters({ server: chosen })} />
          <FilterField label={mcp.tool} placeholder={mcp.toolPlaceholder} value={filters.tool} onChange={(tool) => updateFilters({ tool })} />
          <SearchFilter
            label={mcp.callerName} placeholder={mcp.anyCaller} chosen={actor} useChoices={useActorChoices}
            onChoose={(choice) => updateFilters({ actor_id: choice?.id })}
          />
          <ChoiceFilter
            label={mcp.outcome} any={mcp.anyOutcome} values={OUTCOMES} nameOf={texts.statusOf} value={filters.outcome}
            onChange={(outcome) => updateFilters({ outcome })}
          />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <EventList
        label={mcp.callsTitle} list={events} columnsOf={columnsOf} openSequence={openSequence} onOpen={openEvent}
        dialogOf={(event, close) => <CallDialog event={event} onClose={close} />} empty={mcp.noCalls} emptyText={mcp.noCallsText} older={mcp.older}
        onClear={isFiltered ? clear : undefined}
      />
    </Page>
  );
}

export function Outcome({ outcome }: { outcome: string }) {
  return <Badge tone={TONES[outcome] ?? "neutral"}>{texts.statusOf(outcome)}</Badge>;
}

function columnsOf(open: (event: AuditEvent) => void): Column<AuditEvent>[] {
  const mcp = mcpTexts;
  return [
    {
      id: "tool", header: mcp.tool, meta: { width: "28%" },
      cell: ({ row: { original } }) => {
        const { tool, server } = callOf(original);
        const name = tool ?? mcp.unknownTool;
        return (
          <RuleName name={name} detail={server} opener={{ id: original.id, label: mcp.openCall(name, shortTime(original.timestamp)), onOpen: () => open(original) }} />
        );
      },
    },
    { id: "time", header: mcp.time, cell: ({ row }) => <Time at={row.original.timestamp} /> },
    { id: "caller", header: mcp.callerName, cell: ({ row }) => <Actor event={row.original} /> },
    { id: "outcome", header: mcp.outcome, cell: ({ row }) => <Outcome outcome={row.original.outcome} /> },
    {
      id: "dlp", header: mcp.dlp, meta: { hideBelow: "desk" },
      cell: ({ row: { original } }) => {
        const { dlpAction } = callOf(original);
        return dlpAction === null ? texts.none : texts.dlpActionOf(dlpAction);
      },
    },
    {
      id: "duration", header: mcp.duration, meta: { align: "end", hideBelow: "tablet" },
      cell: ({ row }) => duration(callOf(row.original).latencyMs),
    },
  ];
}
