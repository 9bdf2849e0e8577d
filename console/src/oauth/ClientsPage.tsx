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
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { oauthTexts } from "../texts/oauth";
import { webhookTexts } from "../texts/webhooks";
import { type ClientFilters, type OAuthClient, type Sort, useClients, useDeleteClient, useUpdateClient } from "./api";
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
  const { page = 1, sort = "-created_at", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useClients(filters, sort, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const filter = (changed: ClientFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={oauth.title}
      actions={administers && <CreateClient />}
      bar={
        <>
          <FilterField label={rules.search} placeholder={oauth.searchPlaceholder} value={filters.search} onChange={(search) => filter({ search })} />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => filter({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={oauth.title} list={list} columns={columns} idOf={(client) => client.client_id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={AppWindow} title={oauth.empty} text={oauth.emptyText} />}
      />
    </Page>
  );
}

function columnsOf(administers: boolean): Column<OAuthClient>[] {
  const { rules } = texts;
  const oauth = oauthTexts;
  const keys = keyTexts;
  const webhooks = webhookTexts;
  const columns: Column<OAuthClient>[] = [
    { id: "name", header: rules.name, meta: { width: "38%", sort: "name" }, cell: ({ row }) => <RuleName name={row.original.name} detail={row.original.client_id} code /> },
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
  const update = useUpdateClient(client.client_id);
  const remove = useDeleteClient(client.client_id);
  return (
    <>
      <RuleMenu
        name={client.name} enabled={client.enabled} deleteText={oauth.deleteText}
        onToggle={() => update.mutateAsync({ enabled: !client.enabled })} onDelete={() => remove.mutateAsync(undefined)}
        editor={(close) => <ChangedClientForm client={client} onDone={close} />}
      >
        {!client.public && <MenuItem onClick={() => setRotating(true)}><RefreshCw aria-hidden size={15} />{oauth.rotate}</MenuItem>}
      </RuleMenu>
      <RotateDialog client={client} open={rotating} onClose={() => setRotating(false)} />
    </>
  );
}
