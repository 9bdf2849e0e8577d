import { getRouteApi, Link } from "@tanstack/react-router";
import { ChartPie } from "lucide-react";
import { useMemo } from "react";
import { Badge } from "../parts/Badge";
import { Chip } from "../parts/Chip";
import { type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { count, dollars } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { spendTexts } from "../texts/spend";
import { type AliasPeriod, type AliasSort, type AliasSpendItem, DEFAULT_SORT, PAGE_SIZE, useAliasSpend } from "./api";
import { ALIAS_PERIODS, ALIAS_SORTS } from "./choices";
import { Share } from "./columns";
import styles from "./SpendPage.module.css";
import { SpendViews } from "./SpendViews";

const route = getRouteApi("/spend");

/** Requests, errors and cost by model alias, or by deployment of one alias. */
export function AliasSpend() {
  const { alias, period: chosen, sort: order, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const period: AliasPeriod = chosen === "week" ? "week" : "month";
  const sort = ALIAS_SORTS.find((value) => value === order);
  const list = useAliasSpend(period, alias, sort ?? DEFAULT_SORT, page);
  const { data } = list;
  const total = data?.sum.cost_usd ?? 0;
  const columns = useMemo(() => columnsOf(alias, period, total), [alias, period, total]);
  return (
    <Page
      title={spendTexts.title}
      views={<SpendViews />}
      filterBar={
        <>
          <FilterSelect
            label={spendTexts.period} value={period}
            onChange={({ target }) => void navigate({ search: { by: "model_alias", alias, sort, period: target.value as AliasPeriod } })}
          >
            {ALIAS_PERIODS.map((value) => <option key={value} value={value}>{spendTexts.periods[value]}</option>)}
          </FilterSelect>
          {alias !== undefined && (
            <Chip
              text={spendTexts.filtered(spendTexts.ofAlias, alias)} removeLabel={spendTexts.removeFilter(spendTexts.ofAlias)}
              onRemove={() => void navigate({ search: { by: "model_alias", period, sort } })}
            />
          )}
          {data !== undefined && data.total > 0 && (
            <span className={styles["sum"]} role="status">{spendTexts.sumOfAliases(dollars(total), count(data.sum.requests))}</span>
          )}
        </>
      }
    >
      <Panel label={spendTexts.title}>
        {list.error && data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : data?.total === 0 ? (
          <EmptyState icon={ChartPie} title={spendTexts.emptyAliases} text={spendTexts.emptyText} />
        ) : (
          <>
            <DataTable
              label={alias === undefined ? spendTexts.groupings.model_alias : spendTexts.deployments} columns={columns} rows={data?.items}
              rowId={rowId} stale={list.isPlaceholderData} sort={sort ?? DEFAULT_SORT}
              onSort={(next) => void navigate({ search: { by: "model_alias", alias, period, sort: next as AliasSort } })}
            />
            {data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={data.total}
                onPage={(next) => void navigate({ search: { by: "model_alias", alias, period, sort, page: next } })}
              />
            )}
          </>
        )}
      </Panel>
    </Page>
  );
}

function rowId({ model_alias: alias, provider, model_id: model, shadow }: AliasSpendItem): string {
  return [alias, provider, model, shadow].join(" ");
}

function columnsOf(alias: string | undefined, period: AliasPeriod, total: number): Column<AliasSpendItem>[] {
  return [
    {
      id: "name", header: alias === undefined ? spendTexts.ofAlias : spendTexts.deployment, meta: { width: "40%", sort: "name" },
      cell: ({ row: { original: item } }) => (alias === undefined ? <Alias name={item.model_alias} period={period} /> : <Deployment item={item} period={period} />),
    },
    { id: "requests", header: spendTexts.requests, meta: { align: "end", sort: "-requests" }, cell: ({ row }) => count(row.original.requests) },
    { id: "errors", header: spendTexts.errors, meta: { align: "end", hideBelow: "tablet", sort: "-errors" }, cell: ({ row }) => count(row.original.errors) },
    { id: "cost", header: spendTexts.cost, meta: { align: "end", sort: "-cost_usd" }, cell: ({ row }) => dollars(row.original.cost_usd) },
    {
      id: "share", header: spendTexts.share, meta: { align: "end", hideBelow: "desk" },
      cell: ({ row }) => <Share share={total === 0 ? 0 : row.original.cost_usd / total} />,
    },
  ];
}

function Alias({ name, period }: { name: string; period: AliasPeriod }) {
  return <Link to="/spend" search={{ by: "model_alias", period, alias: name }} aria-label={spendTexts.deploymentsOf(name)}>{name}</Link>;
}

function Deployment({ item: { provider, model_id: model, shadow }, period }: { item: AliasSpendItem; period: AliasPeriod }) {
  if (provider === null || model === null) return <span className={styles["none"]}>{spendTexts.noDeployment}</span>;
  const name = `${provider}/${model}`;
  return (
    <>
      <Link to="/requests" search={{ provider, model, period }} aria-label={spendTexts.requestsOf(name)}>{name}</Link>
      {shadow && <> <Badge tone="neutral">{spendTexts.shadow}</Badge></>}
    </>
  );
}
