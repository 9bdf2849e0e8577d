import { getRouteApi } from "@tanstack/react-router";
import { AppWindow, RefreshCw, SearchX } from "lucide-react";
import { useMemo, useState } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EnabledBadge, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type OAuthClient, PAGE_SIZE, useClients, useDeleteClient, useUpdateClient } from "./api";
import { bodyOf, ClientForm } from "./ClientForm";
import { CreateClient, RotateDialog } from "./SecretDialogs";

const route = getRouteApi("/oauth-clients");
/** Scopes that a row shows before it counts the rest. */
const SHOWN_SCOPES = 2;

/** The OAuth clients, newest first: programs that call the API as themselves, and applications that people sign in to. */
export function ClientsPage() {
  const { oauth, keys, rules } = texts;
  const { administers } = useRights();
  const { enabled, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch, isPlaceholderData } = useClients(enabled, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={oauth.title}
      actions={administers && <CreateClient />}
      bar={
        <>
          <FilterSelect
            label={rules.status} value={enabled === undefined ? "" : String(enabled)}
            onChange={({ target }) => void navigate({ search: target.value === "" ? {} : { enabled: target.value === "true" } })}
          >
            <option value="">{rules.anyStatus}</option>
            <option value="true">{rules.enabled}</option>
            <option value="false">{rules.disabled}</option>
          </FilterSelect>
          {enabled !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={oauth.title}>
        {error && data === undefined ? (
          <ErrorState error={error} onRetry={() => void refetch()} />
        ) : data?.total === 0 && enabled !== undefined ? (
          <EmptyState icon={SearchX} title={rules.noneMatch} text={keys.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : data?.total === 0 ? (
          <EmptyState icon={AppWindow} title={oauth.empty} text={oauth.emptyText} />
        ) : (
          <>
            <DataTable label={oauth.title} columns={columns} rows={data?.items} idOf={(client) => client.client_id} stale={isPlaceholderData} />
            {data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={data.total}
                onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
              />
            )}
          </>
        )}
      </Panel>
    </Page>
  );
}

function columnsOf(administers: boolean): Column<OAuthClient>[] {
  const { oauth, rules, keys, webhooks } = texts;
  const columns: Column<OAuthClient>[] = [
    { id: "name", header: rules.name, meta: { width: "38%" }, cell: ({ row }) => <RuleName name={row.original.name} detail={row.original.client_id} code /> },
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
      id: "lastUsed", header: keys.lastUsed, meta: { hideBelow: "desk" },
      cell: ({ row }) => (row.original.last_used === null ? keys.never : <Time at={row.original.last_used} as="relative" />),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((client) => <Actions client={client} />));
  return columns;
}

function Actions({ client }: { client: OAuthClient }) {
  const { oauth, rules } = texts;
  const [rotating, setRotating] = useState(false);
  const update = useUpdateClient(client.client_id);
  const remove = useDeleteClient(client.client_id);
  return (
    <>
      <RuleMenu
        name={client.name} enabled={client.enabled} deleteText={oauth.deleteText}
        onToggle={() => update.mutateAsync({ enabled: !client.enabled })} onDelete={() => remove.mutateAsync(undefined)}
        editor={(close) => (
          <ClientForm
            client={client} onCancel={close}
            onSubmit={async (fields) => {
              await update.mutateAsync(bodyOf(fields));
              toast(rules.saved(fields.name));
              close();
            }}
          />
        )}
      >
        {!client.public && <MenuItem onClick={() => setRotating(true)}><RefreshCw aria-hidden size={15} />{oauth.rotate}</MenuItem>}
      </RuleMenu>
      <RotateDialog client={client} open={rotating} onClose={() => setRotating(false)} />
    </>
  );
}
