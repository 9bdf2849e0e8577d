import { getRouteApi } from "@tanstack/react-router";
import { CirclePlus, Plug, Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { MUST_BE_NEW } from "../api/versions";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { Dialog } from "../parts/Dialog";
import { FilterField } from "../parts/FilterField";
import { EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { EmptyState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { providerTexts } from "../texts/providers";
import { type Provider, type ProviderFilters, type Sort, useProviderPage, useProviders, useSetCredentials } from "./api";
import { CredentialsForm } from "./CredentialsForm";
import { ProviderActions } from "./ProviderActions";
import styles from "./ProvidersPage.module.css";

const route = getRouteApi("/providers");
const HEALTH_TONES: Record<Provider["health_check_status"], Tone> = {
  healthy: "success", degraded: "warning", unreachable: "danger", unknown: "neutral",
};

export function ProvidersPage() {
  const { administers } = useRights();
  const { page = 1, sort = "id", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useProviderPage(filters, sort, page);
  const [adding, setAdding] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const setCredentials = useSetCredentials();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const providers = useProviders(adding);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: ProviderFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  const close = () => setAdding(false);
  const taken = useMemo(() => new Set(providers.data?.map(({ id }) => id)), [providers.data]);

  return (
    <Page
      title={providerTexts.title}
      actions={administers && (
        <Button ref={opener} look="primary" onClick={() => setAdding(true)}><Plus aria-hidden />{providerTexts.new}</Button>
      )}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={providerTexts.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={providerTexts.title} list={list} columns={columns} rowId={(provider) => provider.id} page={page} sort={sort}
        isFiltered={isFiltered} onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={
          <EmptyState icon={Plug} title={providerTexts.empty} text={providerTexts.emptyText}>
            {administers && <Button onClick={() => setAdding(true)}><CirclePlus aria-hidden />{providerTexts.new}</Button>}
          </EmptyState>
        }
      />
      <Dialog open={adding} onClose={close} returnTo={opener} title={providerTexts.newTitle} text={providerTexts.newText}>
        {providers.isPending ? (
          <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>
        ) : (
          <CredentialsForm
            taken={taken} onCancel={close}
            onSubmit={async (id, credentials) => {
              await setCredentials.mutateAsync({ id, credentials, header: MUST_BE_NEW });
              toast(providerTexts.added(id));
              close();
            }}
          />
        )}
      </Dialog>
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Provider>[] {
  const providers = providerTexts;
  const columns: Column<Provider>[] = [
    {
      id: "name", header: providers.name, meta: { width: "30%", sort: "name" },
      cell: ({ row: { original } }) => (
        <span className={styles["provider"]}>
          <span className={styles["name"]}>{original.name}</span>
          <code className={styles["muted"]}>{original.id}</code>
        </span>
      ),
    },
    { id: "kind", header: providers.kindHeader, meta: { hideBelow: "desk", sort: "kind" }, cell: ({ row }) => providers.kindOf(row.original.kind) },
    { id: "status", header: providers.status, cell: ({ row }) => <Status provider={row.original} /> },
    {
      id: "health", header: providers.health,
      cell: ({ row: { original } }) => (
        <Badge tone={HEALTH_TONES[original.health_check_status]}>{texts.overview.healthOf(original.health_check_status)}</Badge>
      ),
    },
    {
      id: "checked", header: providers.checked, meta: { hideBelow: "tablet", sort: "-last_health_check" },
      cell: ({ row: { original } }) =>
        original.last_health_check === null
          ? <span className={styles["muted"]}>{texts.none}</span>
          : <Time at={original.last_health_check} as="relative" />,
    },
    {
      id: "models", header: providers.models, meta: { align: "end", hideBelow: "tablet" },
      cell: ({ row }) => row.original.models_enabled.toLocaleString("en"),
    },
  ];
  if (administers) columns.push(actionsColumn((provider) => <ProviderActions provider={provider} />));
  return columns;
}

function Status({ provider }: { provider: Provider }) {
  const providers = providerTexts;
  if (provider.kill_switch_active) return <Badge tone="danger">{providers.stopped}</Badge>;
  if (!provider.enabled) return <Badge>{providers.disabled}</Badge>;
  if (!provider.credentials_configured) return <Badge tone="warning">{providers.unconfigured}</Badge>;
  return <Badge tone="success">{providers.active}</Badge>;
}
