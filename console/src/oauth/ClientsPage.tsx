import { getRouteApi } from "@tanstack/react-router";
import { AppWindow, RefreshCw } from "lucide-react";
import { useMemo, useState } from "react";
import { useRights } from "../api/queries";
import { useIfMatch } from "../api/versions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page } from "../parts/Page";
import { EnabledBadge, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { RowFailure } from "../parts/useOpenRow";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { oauthTexts } from "../texts/oauth";
import { webhookTexts } from "../texts/webhooks";
import { type ClientFilters, type OAuthClient, type Sort, useClients, useDeleteClient, useSetClientEnabled, useUpdateClient } from "./api";
import { ClientDetails, useClient } from "./ClientDetails";
import { bodyOf, ClientForm } from "./ClientForm";
import { CreateClient, RotateDialog } from "./SecretDialogs";

const route = getRouteApi("/oauth-clients");
/** The number of scopes that a row lists. It shows only the number of the other scopes. */
const SHOWN_SCOPES = 2;

/** The OAuth clients: programs that call the API as themselves, and applications that people sign in to. */
export function ClientsPage() {
  const { rules } = texts;
  const oauth = oauthTexts;
  const { administers } = useRights();
  const { page = 1, sort = "-created_at", client: openId, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useClients(filters, sort, page);
  const { open, close } = useMemo(() => ({
    open: (client: OAuthClient) => void navigate({ search: (now) => ({ ...now, client: client.client_id }) }),
    close: () => void navigate({ search: ({ client: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const listed = list.data?.rows.find((client) => client.client_id === openId);
  const other = useClient(list.data !== undefined && listed === undefined ? openId : undefined);
  const opened = openId === undefined ? undefined : listed ?? other.data;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: ClientFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={oauth.title}
      actions={administers && <CreateClient />}
      filterBar={
        <>
          <FilterField label={rules.search} placeholder={oauth.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={oauth.title} list={list} columns={columns} rowId={(client) => client.client_id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear} selectedId={openId} onOpen={open}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={AppWindow} title={oauth.empty} text={oauth.emptyText} />}
      />
      <ClientDetails client={opened} onClose={close} />
      <RowFailure failed={other.error !== null && opened === undefined ? other : undefined} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (client: OAuthClient) => void): Column<OAuthClient>[] {
  const { rules } = texts;
  const oauth = oauthTexts;
  const keys = keyTexts;
  const webhooks = webhookTexts;
  const columns: Column<OAuthClient>[] = [
    { id: "name", header: rules.name, meta: { width: "38%", sort: "name" }, cell: ({ row: { original: client } }) => <Name client={client} onOpen={() => open(client)} /> },
    {
      id: "scopes", header: oauth.scopes, meta: { hideBelow: "tablet" },
      cell: ({ row: { original: { scopes, tenant_id: tenant } } }) => (
        <span title={scopes.join("\n")}>
          {scopes.length === 0 ? texts.none : webhooks.someEvents(scopes.slice(0, SHOWN_SCOPES), scopes.length - SHOWN_SCOPES)}
          {tenant === null && <> <Badge tone="info">{oauth.platformWide}</Badge></>}
        </span>
      ),
    },
    {
      id: "lastUsed", header: keys.lastUsed, meta: { hideBelow: "desk", sort: "-last_used" },
      cell: ({ row }) => (row.original.last_used === null ? keys.never : <Time at={row.original.last_used} as="relative" />),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((client) => <Actions client={client} />));
  return columns;
}

function Name({ client: { name, client_id: id }, onOpen }: { client: OAuthClient; onOpen: () => void }) {
  return <RuleName name={name} detail={id} code opener={{ id, label: oauthTexts.detailsOf(name), onOpen }} />;
}

function ChangedClientForm({ client, onDone }: { client: OAuthClient; onDone: () => void }) {
  const update = useUpdateClient(client.client_id, useIfMatch(client));
  return (
    <ClientForm
      client={client} onCancel={onDone}
      onSubmit={async (fields) => {
        await update.mutateAsync(bodyOf(fields));
        toast(texts.rules.saved(fields.name));
        onDone();
      }}
    />
  );
}

function Actions({ client }: { client: OAuthClient }) {
  const oauth = oauthTexts;
  const [rotating, setRotating] = useState(false);
  const setEnabled = useSetClientEnabled(client.client_id);
  const remove = useDeleteClient(client.client_id);
  return (
    <>
      <RuleMenu
        name={client.name} enabled={client.enabled} deleteText={oauth.deleteText}
        onToggle={() => setEnabled.mutateAsync(!client.enabled)} onDelete={() => remove.mutateAsync(undefined)}
        editor={(close) => <ChangedClientForm client={client} onDone={close} />}
      >
        {!client.public && <MenuItem onClick={() => setRotating(true)}><RefreshCw aria-hidden size={15} />{oauth.rotate}</MenuItem>}
      </RuleMenu>
      <RotateDialog client={client} open={rotating} onClose={() => setRotating(false)} />
    </>
  );
}
