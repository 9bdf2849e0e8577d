import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Cable, Grid3x3, ListChecks, RefreshCw, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { PAGE_SIZE } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState, errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Server, useCreateServer, useDeleteServer, useRefresh, useServers, useSetServerEnabled, useUpdateServer } from "./api";
import { McpViews } from "./McpViews";
import { bodyOf, credentialOf } from "./server-fields";
import { ServerDialog } from "./ServerDialog";
import { ServerForm } from "./ServerForm";
import { McpSwitchButton } from "./SwitchButton";

const route = getRouteApi("/mcp-servers");

type State = keyof typeof mcpTexts.states;

const TONES: Record<State, Tone> = { stopped: "danger", disabled: "neutral", unread: "warning", ready: "success" };

/** The list of MCP servers. A dialog shows the details of the server that the URL names. */
export function ServersPage() {
  const mcp = mcpTexts;
  const { administers } = useRights();
  const { page = 1, search, server: openId } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useServers(search, page);
  const clear = () => void navigate({ search: {} });
  const { open, close } = useMemo(() => ({
    open: (server: Server) => void navigate({ search: (now) => ({ ...now, server: server.id }) }),
    close: () => void navigate({ search: ({ server: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  return (
    <Page
      title={mcp.title} actions={administers && <CreateServer />} views={<McpViews />}
      filterBar={
        <>
          <FilterField
            label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={search}
            onChange={(text) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, search: text }) })}
          />
          {search !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={mcp.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.total === 0 && search !== undefined ? (
          <EmptyState icon={SearchX} title={texts.rules.noneMatch} text={texts.rules.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.total === 0 ? (
          <EmptyState icon={Cable} title={mcp.empty} text={mcp.emptyText} />
        ) : (
          <>
            <DataTable
              label={mcp.title} columns={columns} rows={list.data?.rows} rowId={(server) => server.id} selectedId={openId} onOpen={open}
              stale={list.isPlaceholderData}
            />
            {list.data !== undefined && (
              <Pager page={page} size={PAGE_SIZE} total={list.data.total} onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })} />
            )}
          </>
        )}
      </Panel>
      <ServerDialog id={openId} onClose={close} />
    </Page>
  );
}

export function stateOf(server: Server): State {
  if (server.switched_off_at !== null) return "stopped";
  if (!server.enabled) return "disabled";
  return server.refreshed_at === null ? "unread" : "ready";
}

export function ServerState({ server }: { server: Server }) {
  const state = stateOf(server);
  return <Badge tone={TONES[state]}>{mcpTexts.states[state]}</Badge>;
}

function columnsOf(administers: boolean, open: (server: Server) => void): Column<Server>[] {
  const mcp = mcpTexts;
  const columns: Column<Server>[] = [
    {
      id: "name", header: texts.rules.name, meta: { width: "38%" },
      cell: ({ row: { original: server } }) => (
        <RuleName name={server.name} detail={server.url ?? server.stdio?.command ?? ""} opener={{ id: server.id, label: mcp.details(server.name), onOpen: () => open(server) }} />
      ),
    },
    { id: "status", header: mcp.status, cell: ({ row }) => <ServerState server={row.original} /> },
    { id: "access", header: mcp.access, meta: { hideBelow: "tablet" }, cell: ({ row }) => mcp.accesses[row.original.access] },
    { id: "credential", header: mcp.credential, meta: { hideBelow: "desk" }, cell: ({ row }) => mcp.credentials[credentialOf(row.original)] },
    {
      id: "read", header: mcp.readAt, meta: { hideBelow: "tablet" },
      cell: ({ row: { original: { refreshed_at: at } } }) => (at === null ? mcp.never : <Time at={at} as="relative" />),
    },
  ];
  if (administers) {
    columns.push(
      { id: "switch", header: mcp.killSwitch, meta: { align: "end", width: "7.5rem" }, cell: ({ row }) => <McpSwitchButton target={row.original} /> },
      actionsColumn((server) => <Actions server={server} />),
    );
  }
  return columns;
}

function CreateServer() {
  const create = useCreateServer();
  return (
    <NewRuleButton
      label={mcpTexts.new} title={mcpTexts.newTitle}
      editor={(close) => (
        <ServerForm
          onCancel={close}
          onSubmit={async (fields) => {
            const server = await create.mutateAsync({ ...bodyOf(fields), enabled: true });
            toast(texts.rules.created(server.name));
            close();
          }}
        />
      )}
    />
  );
}

function EditServer({ server, onDone }: { server: Server; onDone: () => void }) {
  const update = useUpdateServer(server);
  return (
    <ServerForm
      server={server} onCancel={onDone}
      onSubmit={async (fields) => {
        await update.mutateAsync(bodyOf(fields));
        toast(texts.rules.saved(fields.name));
        onDone();
      }}
    />
  );
}

/** Returns a function that reads the tools of a server, and reports what was found. */
export function useReadTools(server: Server): { run: () => void; busy: boolean } {
  const refresh = useRefresh(server.id);
  const run = () =>
    refresh.mutate(undefined, {
      onSuccess: ({ added, changed, missing, returned, unchanged }) =>
        toast(mcpTexts.toolsRead(server.name, mcpTexts.refreshed({
          added: added.length, changed: changed.length, missing: missing.length, returned: returned.length, unchanged,
        }))),
      onError: (error) => toast(errorText(error), "failed"),
    });
  return { run, busy: refresh.isPending };
}

function Actions({ server }: { server: Server }) {
  const mcp = mcpTexts;
  const navigate = useNavigate();
  const read = useReadTools(server);
  const setEnabled = useSetServerEnabled(server.id);
  const remove = useDeleteServer(server.id);
  return (
    <RuleMenu
      name={server.name} enabled={server.enabled} deleteText={mcp.deleteText}
      onToggle={() => setEnabled.mutateAsync(!server.enabled)} onDelete={() => remove.mutateAsync(undefined)}
      editor={(close) => <EditServer server={server} onDone={close} />}
    >
      <MenuItem onClick={read.run}><RefreshCw aria-hidden size={15} />{mcp.read}</MenuItem>
      <MenuItem onClick={() => void navigate({ to: "/mcp-servers/tools", search: { server: server.id } })}><ListChecks aria-hidden size={15} />{mcp.showTools}</MenuItem>
      <MenuItem onClick={() => void navigate({ to: "/mcp-servers/access", search: { server: server.id } })}><Grid3x3 aria-hidden size={15} />{mcp.showAccess}</MenuItem>
    </RuleMenu>
  );
}
