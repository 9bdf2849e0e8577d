import { CirclePlus, Plug, Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Dialog } from "../parts/Dialog";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type Provider, useProviders, useSetCredentials } from "./api";
import { CredentialsForm } from "./CredentialsForm";
import { ProviderActions } from "./ProviderActions";
import styles from "./ProvidersPage.module.css";

const HEALTH_TONES: Record<Provider["health_check_status"], Tone> = {
  healthy: "success", degraded: "warning", unreachable: "danger", unknown: "neutral",
};

export function ProvidersPage() {
  const { administers } = useRights();
  const providers = useProviders();
  const [adding, setAdding] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const setCredentials = useSetCredentials();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const close = () => setAdding(false);
  const taken = useMemo(() => new Set(providers.data?.map(({ id }) => id)), [providers.data]);

  return (
    <Page
      title={texts.providers.title}
      actions={administers && (
        <Button ref={opener} look="primary" onClick={() => setAdding(true)}><Plus aria-hidden />{texts.providers.new}</Button>
      )}
    >
      <Panel label={texts.providers.title}>
        {providers.error && providers.data === undefined ? (
          <ErrorState error={providers.error} onRetry={() => void providers.refetch()} />
        ) : providers.data?.length === 0 ? (
          <EmptyState icon={Plug} title={texts.providers.empty} text={texts.providers.emptyText}>
            {administers && <Button onClick={() => setAdding(true)}><CirclePlus aria-hidden />{texts.providers.new}</Button>}
          </EmptyState>
        ) : (
          <DataTable label={texts.providers.title} columns={columns} rows={providers.data} idOf={(provider) => provider.id} />
        )}
      </Panel>
      <Dialog open={adding} onClose={close} returnTo={opener} title={texts.providers.newTitle} text={texts.providers.newText}>
        {providers.isPending ? (
          <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>
        ) : (
          <CredentialsForm
            taken={taken} onCancel={close}
            onSubmit={async (id, credentials) => {
              await setCredentials.mutateAsync({ id, credentials, isNew: true });
              toast(texts.providers.added(id));
              close();
            }}
          />
        )}
      </Dialog>
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Provider>[] {
  const { providers } = texts;
  const columns: Column<Provider>[] = [
    {
      id: "name", header: providers.name, meta: { width: "30%" },
      cell: ({ row: { original } }) => (
        <span className={styles["provider"]}>
          <span className={styles["name"]}>{original.name}</span>
          <code className={styles["muted"]}>{original.id}</code>
        </span>
      ),
    },
    { id: "kind", header: providers.kindHeader, meta: { hideBelow: "desk" }, cell: ({ row }) => providers.kindOf(row.original.kind) },
    { id: "status", header: providers.status, cell: ({ row }) => <Status provider={row.original} /> },
    {
      id: "health", header: providers.health,
      cell: ({ row: { original } }) => (
        <Badge tone={HEALTH_TONES[original.health_check_status]}>{texts.overview.healthOf(original.health_check_status)}</Badge>
      ),
    },
    {
      id: "checked", header: providers.checked, meta: { hideBelow: "tablet" },
      cell: ({ row: { original } }) =>
        original.last_health_check === null
          ? <span className={styles["muted"]}>{texts.none}</span>
          : <Time at={original.last_health_check} as="relative" />,
    },
    {
      id: "models", header: providers.models, meta: { align: "end", hideBelow: "tablet" },
      cell: ({ row }) => row.original.models_enabled.toLocaleString(),
    },
  ];
  if (administers) columns.push(actionsColumn((provider) => <ProviderActions provider={provider} />));
  return columns;
}

function Status({ provider }: { provider: Provider }) {
  const { providers } = texts;
  if (provider.kill_switch_active) return <Badge tone="danger">{providers.stopped}</Badge>;
  if (!provider.enabled) return <Badge>{providers.disabled}</Badge>;
  if (!provider.credentials_configured) return <Badge tone="warning">{providers.unconfigured}</Badge>;
  return <Badge tone="success">{providers.active}</Badge>;
}
