import { getRouteApi, Link } from "@tanstack/react-router";
import { KeyRound, Plus, SearchX } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { type ApiKey, PAGE_SIZE, useKeys } from "./api";
import { CreateKeyDialog } from "./CreateKeyDialog";
import { KeyActions } from "./KeyActions";
import styles from "./KeysPage.module.css";

const TONES: Record<ApiKey["status"], Tone> = { active: "success", disabled: "neutral", expired: "warning", suspended: "danger" };

const route = getRouteApi("/keys");

export function KeysPage() {
  const { seesAll } = useRights();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const all = seesAll && search.all === true;
  const page = all ? (search.page ?? 1) : 1;
  const enabled = all ? search.enabled : undefined;
  const keys = useKeys({ all, enabled, page });
  const [creating, setCreating] = useState(false);
  const columns = useMemo(() => columnsOf(all), [all]);
  const opener = useRef<HTMLButtonElement>(null);
  const isEmpty = keys.data?.total === 0;

  return (
    <Page
      title={texts.keys.title}
      actions={
        <Button ref={opener} look="primary" onClick={() => setCreating(true)}><Plus aria-hidden />{texts.keys.create}</Button>
      }
      bar={seesAll && (
        <>
          <Segments label={texts.keys.scope}>
            <Link to="/keys" search={{}} activeOptions={{ exact: true }}>{texts.keys.mine}</Link>
            <Link to="/keys" search={{ all: true }}>{texts.keys.all}</Link>
          </Segments>
          {all && (
            <FilterSelect
              label={texts.keys.statusFilter}
              value={enabled === undefined ? "" : String(enabled)}
              onChange={({ target }) =>
                void navigate({ search: { all: true, ...(target.value === "" ? {} : { enabled: target.value === "true" }) } })}
            >
              <option value="">{texts.keys.anyStatus}</option>
              <option value="true">{texts.keys.enabledOnly}</option>
              <option value="false">{texts.keys.disabledOnly}</option>
            </FilterSelect>
          )}
        </>
      )}
    >
      <Panel label={texts.keys.title}>
        {keys.error && keys.data === undefined ? (
          <ErrorState error={keys.error} onRetry={() => void keys.refetch()} />
        ) : isEmpty && enabled !== undefined ? (
          <EmptyState icon={SearchX} title={texts.keys.noneMatch} text={texts.keys.noneMatchText} />
        ) : isEmpty ? (
          <EmptyState icon={KeyRound} title={all ? texts.keys.emptyAll : texts.keys.empty} text={texts.keys.emptyText}>
            <Button onClick={() => setCreating(true)}><Plus aria-hidden />{texts.keys.create}</Button>
          </EmptyState>
        ) : (
          <>
            <DataTable
              label={texts.keys.title} columns={columns} rows={keys.data?.rows} idOf={(key) => key.id}
              stale={keys.isPlaceholderData}
            />
            {all && keys.data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={keys.data.total}
                onPage={(next) => void navigate({ search: { ...search, page: next } })}
              />
            )}
          </>
        )}
      </Panel>
      <CreateKeyDialog open={creating} onClose={() => setCreating(false)} returnTo={opener} />
    </Page>
  );
}

function columnsOf(all: boolean): Column<ApiKey>[] {
  const columns: Column<ApiKey>[] = [
    {
      id: "name", header: texts.keys.name, meta: { width: all ? "26%" : "34%" },
      cell: ({ row }) => <span className={styles["name"]} title={row.original.description}>{row.original.description}</span>,
    },
    { id: "key", header: texts.keys.key, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code className={styles["key"]}>{row.original.key_prefix}…</code> },
    {
      id: "status", header: texts.keys.status,
      cell: ({ row }) => <Badge tone={TONES[row.original.status]}>{texts.keyStatusOf(row.original.status)}</Badge>,
    },
    { id: "created", header: texts.keys.created, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
    { id: "lastUsed", header: texts.keys.lastUsed, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Moment at={row.original.last_used} /> },
    { id: "expires", header: texts.keys.expires, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Moment at={row.original.expires_at} /> },
    actionsColumn((key) => <KeyActions apiKey={key} />),
  ];
  if (all) columns.splice(3, 0, { id: "owner", header: texts.keys.owner, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Owner id={row.original.user_id} /> });
  return columns;
}

function Moment({ at }: { at: string | null }) {
  return at === null ? <span className={styles["never"]}>{texts.keys.never}</span> : <Time at={at} as="relative" />;
}

function Owner({ id }: { id: string | undefined }) {
  return <span className={styles["owner"]}>{useUserName(id) ?? texts.none}</span>;
}
