import { getRouteApi, Link } from "@tanstack/react-router";
import { KeyRound, Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { EnabledFilter } from "../parts/filters";
import { FilterField } from "../parts/FilterField";
import { dollars } from "../parts/format";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { Segments } from "../parts/Segments";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { type ApiKey, DEFAULT_SORT, type KeyFilters, MAX_TOTAL, type Sort, useKeys } from "./api";
import { CreateKeyDialog } from "./CreateKeyDialog";
import { KeyActions } from "./KeyActions";
import styles from "./KeysPage.module.css";

const TONES: Record<ApiKey["status"], Tone> = { active: "success", disabled: "neutral", expired: "warning", suspended: "danger" };

const route = getRouteApi("/keys");

export function KeysPage() {
  const keys = keyTexts;
  const { seesAll } = useRights();
  const { page = 1, sort = DEFAULT_SORT, all: allChosen, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const all = seesAll && allChosen === true;
  const list = useKeys(all, filters, sort, page);
  const [creating, setCreating] = useState(false);
  const columns = useMemo(() => columnsOf(all), [all]);
  const opener = useRef<HTMLButtonElement>(null);
  const isFiltered = filters.search !== undefined || filters.enabled !== undefined;
  const updateFilters = (changed: KeyFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: all ? { all: true } : {} });

  return (
    <Page
      title={keys.title}
      actions={
        <Button ref={opener} look="primary" onClick={() => setCreating(true)}><Plus aria-hidden />{keys.create}</Button>
      }
      filterBar={
        <>
          {seesAll && (
            <Segments label={keys.scope}>
              <Link to="/keys" search={{}} activeOptions={{ exact: true }} aria-current={all ? undefined : "page"}>{keys.mine}</Link>
              <Link to="/keys" search={{ all: true }}>{keys.all}</Link>
            </Segments>
          )}
          <FilterField
            label={keys.search} placeholder={all ? keys.searchAllPlaceholder : keys.searchPlaceholder} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={keys.title} list={list} columns={columns} rowId={(key) => key.id} page={page} sort={sort} isFiltered={isFiltered} onClear={clear}
        {...(all && { maxTotal: MAX_TOTAL })}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={
          <EmptyState icon={KeyRound} title={all ? keys.emptyAll : keys.empty} text={keys.emptyText}>
            <Button onClick={() => setCreating(true)}><Plus aria-hidden />{keys.create}</Button>
          </EmptyState>
        }
      />
      <CreateKeyDialog open={creating} onClose={() => setCreating(false)} returnTo={opener} />
    </Page>
  );
}

function columnsOf(all: boolean): Column<ApiKey>[] {
  const columns: Column<ApiKey>[] = [
    {
      id: "name", header: keyTexts.name, meta: { width: all ? "26%" : "34%", sort: "description" },
      cell: ({ row: { original: { id, description } } }) => (
        <Link className={styles["name"]} to="/requests" search={{ key: id, period: "all" }} title={keyTexts.requestsOf(description)}>{description}</Link>
      ),
    },
    { id: "key", header: keyTexts.key, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code className={styles["key"]}>{row.original.key_prefix}…</code> },
    {
      id: "status", header: keyTexts.status,
      cell: ({ row }) => <Badge tone={TONES[row.original.status]}>{texts.keyStatusOf(row.original.status)}</Badge>,
    },
    { id: "created", header: keyTexts.created, meta: { hideBelow: "desk", sort: "-created_at" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
    { id: "spent", header: keyTexts.spent, meta: { align: "end", hideBelow: "desk", sort: "-month_cost_usd" }, cell: ({ row }) => dollars(row.original.month_cost_usd) },
    { id: "lastUsed", header: keyTexts.lastUsed, meta: { hideBelow: "tablet", sort: "-last_used" }, cell: ({ row }) => <Moment at={row.original.last_used} /> },
    { id: "expires", header: keyTexts.expires, meta: { hideBelow: "tablet", sort: "expires_at" }, cell: ({ row }) => <Moment at={row.original.expires_at} /> },
    actionsColumn((key) => <KeyActions apiKey={key} />),
  ];
  if (all) columns.splice(3, 0, { id: "owner", header: keyTexts.owner, meta: { hideBelow: "tablet", sort: "owner" }, cell: ({ row }) => <Owner name={row.original.user_name} /> });
  return columns;
}

function Moment({ at }: { at: string | null }) {
  return at === null ? <span className={styles["never"]}>{keyTexts.never}</span> : <Time at={at} as="relative" />;
}

function Owner({ name }: { name: string | undefined }) {
  return <span className={styles["owner"]} title={name}>{name ?? texts.none}</span>;
}
