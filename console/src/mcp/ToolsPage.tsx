import { getRouteApi } from "@tanstack/react-router";
import { CircleCheck, ListChecks, SearchX } from "lucide-react";
import { useMemo } from "react";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { type Column, DataTable } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter } from "../parts/filters";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type ListedTool, type ToolFilters, useTools } from "./api";
import { TOOL_STATUSES, type ToolStatus } from "./choices";
import { McpViews } from "./McpViews";
import styles from "./mcp.module.css";
import { ServerFilter } from "./ServerFilter";
import { ToolDialog } from "./ToolDialog";

const route = getRouteApi("/mcp-servers/tools");

const TONES: Record<ToolStatus, Tone> = { quarantined: "warning", approved: "success", rejected: "danger" };

/** The tools of all servers. With the status `quarantined`, those that wait for a decision. A dialog shows the tool that
 * the URL names with its server. */
export function ToolsPage() {
  const mcp = mcpTexts;
  const { page = 1, tool: openId, of: serverId, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useTools(filters, page);
  const { open, close } = useMemo(() => ({
    open: (tool: ListedTool) => void navigate({ search: (now) => ({ ...now, tool: tool.id, of: tool.server_id }) }),
    close: () => void navigate({ search: ({ tool: _, of: __, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(open), [open]);
  const isWaiting = filters.status === "quarantined";
  const isQuarantine = isWaiting && filters.server === undefined && filters.search === undefined;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: ToolFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={isWaiting ? mcp.quarantine : mcp.toolsTitle} views={<McpViews shown={isWaiting ? "quarantine" : "tools"} />}
      filterBar={
        <>
          <FilterField label={mcp.searchTools} placeholder={mcp.searchTools} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <ServerFilter value={filters.server} onChange={(server) => updateFilters({ server })} />
          <ChoiceFilter
            label={mcp.status} any={mcp.anyStatus} values={TOOL_STATUSES} nameOf={(status) => mcp.statuses[status]} value={filters.status}
            onChange={(status) => updateFilters({ status })}
          />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={mcp.toolsTitle}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.total === 0 && isQuarantine ? (
          <EmptyState icon={CircleCheck} title={mcp.nothingWaits} text={mcp.nothingWaitsText} />
        ) : list.data?.total === 0 && isFiltered ? (
          <EmptyState icon={SearchX} title={texts.rules.noneMatch} text={texts.rules.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.total === 0 ? (
          <EmptyState icon={ListChecks} title={mcp.noTools} text={mcp.noToolsText} />
        ) : (
          <>
            <DataTable
              label={mcp.toolsTitle} columns={columns} rows={list.data?.rows} rowId={(tool) => tool.id} selectedId={openId} onOpen={open}
              stale={list.isPlaceholderData}
            />
            {list.data !== undefined && (
              <Pager page={page} size={PAGE_SIZE} total={list.data.total} onPage={(next) => void navigate({ search: { ...filters, page: next } })} />
            )}
          </>
        )}
      </Panel>
      <ToolDialog serverId={serverId} toolId={openId} onClose={close} />
    </Page>
  );
}

/** The status of a tool, and what else decides whether it can be called. */
export function ToolBadges({ tool }: { tool: Omit<ListedTool, "server_name"> }) {
  const mcp = mcpTexts;
  return (
    <span className={styles["badges"]}>
      <Badge tone={TONES[tool.status]}>{mcp.statuses[tool.status]}</Badge>
      {tool.status === "quarantined" && <Badge>{tool.approved_hash === null ? mcp.newTool : mcp.changedTool}</Badge>}
      {tool.missing_since !== null && <Badge tone="warning">{mcp.missing}</Badge>}
      {tool.switched_off_at !== null && <Badge tone="danger">{mcp.stopped}</Badge>}
      {tool.approval_required && <Badge tone="info">{mcp.needsApproval}</Badge>}
    </span>
  );
}

function columnsOf(open: (tool: ListedTool) => void): Column<ListedTool>[] {
  const mcp = mcpTexts;
  return [
    {
      id: "name", header: mcp.tool, meta: { width: "34%" },
      cell: ({ row: { original: tool } }) => (
        <RuleName
          name={tool.name} detail={tool.server_name}
          opener={{ id: tool.id, label: mcp.openTool(tool.name, tool.server_name), onOpen: () => open(tool) }}
        />
      ),
    },
    { id: "status", header: mcp.status, cell: ({ row }) => <ToolBadges tool={row.original} /> },
    { id: "hash", header: mcp.present, meta: { hideBelow: "desk" }, cell: ({ row: { original: { hash } } }) => <code title={hash}>{shortHash(hash)}</code> },
    { id: "updated", header: mcp.updated, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Time at={row.original.updated_at} as="relative" /> },
  ];
}

/** The number of characters of a hash in a list, after `sha256:`. */
const SHORT_HASH_CHARACTERS = 12;

function shortHash(hash: string): string {
  return hash.slice(0, "sha256:".length + SHORT_HASH_CHARACTERS) + "…";
}
