import { getRouteApi, Link } from "@tanstack/react-router";
import { ChartPie } from "lucide-react";
import { useMemo } from "react";
import { Badge } from "../parts/Badge";
import { Chip } from "../parts/Chip";
import { type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { count, dollars } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState } from "../parts/states";
import { spendTexts } from "../texts/spend";
import { type AliasPart, type AliasPeriod, useAliasSpend } from "./api";
import { ALIAS_PERIODS } from "./choices";
import { Share } from "./columns";
import styles from "./SpendPage.module.css";
import { SpendViews } from "./SpendViews";

const route = getRouteApi("/spend");

/** Requests, errors and cost by model alias, or by deployment of one alias. */
export function AliasSpend() {
  const { alias, period: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const period: AliasPeriod = chosen === "week" ? "week" : "month";
  const parts = useAliasSpend(period, alias);
  const total = parts.data?.reduce((sum, part) => sum + part.cost_usd, 0) ?? 0;
  const columns = useMemo(() => columnsOf(alias, period, total), [alias, period, total]);
  return (
    <Page
      title={spendTexts.title}
      views={<SpendViews />}
      bar={
        <>
          <FilterSelect
            label={spendTexts.period} value={period}
            onChange={({ target }) => void navigate({ search: { by: "model_alias", alias, period: target.value as AliasPeriod } })}
          >
            {ALIAS_PERIODS.map((value) => <option key={value} value={value}>{spendTexts.periods[value]}</option>)}
          </FilterSelect>
          {alias !== undefined && (
            <Chip
              text={spendTexts.filtered(spendTexts.ofAlias, alias)} removeLabel={spendTexts.removeFilter(spendTexts.ofAlias)}
              onRemove={() => void navigate({ search: { by: "model_alias", period } })}
            />
          )}
        </>
      }
    >
      <Panel label={spendTexts.title}>
        {parts.error && parts.data === undefined ? (
          <ErrorState error={parts.error} onRetry={() => void parts.refetch()} />
        ) : parts.data?.length === 0 ? (
          <EmptyState icon={ChartPie} title={spendTexts.emptyAliases} text={spendTexts.emptyText} />
        ) : (
          <DataTable
            label={alias === undefined ? spendTexts.bys.model_alias : spendTexts.deployments} columns={columns} rows={parts.data}
            idOf={idOf} stale={parts.isPlaceholderData}
          />
        )}
      </Panel>
    </Page>
  );
}

function idOf({ model_alias: alias, provider, model_id: model, shadow }: AliasPart): string {
  return [alias, provider, model, shadow].join(" ");
}

function columnsOf(alias: string | undefined, period: AliasPeriod, total: number): Column<AliasPart>[] {
  return [
    {
      id: "name", header: alias === undefined ? spendTexts.ofAlias : spendTexts.deployment, meta: { width: "40%" },
      cell: ({ row: { original: part } }) => (alias === undefined ? <Alias name={part.model_alias} period={period} /> : <Deployment part={part} period={period} />),
    },
    { id: "requests", header: spendTexts.requests, meta: { align: "end" }, cell: ({ row }) => count(row.original.requests) },
    { id: "errors", header: spendTexts.errors, meta: { align: "end", hideBelow: "tablet" }, cell: ({ row }) => count(row.original.errors) },
    { id: "cost", header: spendTexts.cost, meta: { align: "end" }, cell: ({ row }) => dollars(row.original.cost_usd) },
    {
      id: "share", header: spendTexts.share, meta: { align: "end", hideBelow: "desk" },
      cell: ({ row }) => <Share share={total === 0 ? 0 : row.original.cost_usd / total} />,
    },
  ];
}

function Alias({ name, period }: { name: string; period: AliasPeriod }) {
  return <Link to="/spend" search={{ by: "model_alias", period, alias: name }} aria-label={spendTexts.deploymentsOf(name)}>{name}</Link>;
}

function Deployment({ part: { provider, model_id: model, shadow }, period }: { part: AliasPart; period: AliasPeriod }) {
  if (provider === null || model === null) return <span className={styles["none"]}>{spendTexts.noDeployment}</span>;
  const name = `${provider}/${model}`;
  return (
    <>
      <Link to="/requests" search={{ provider, model, period }} aria-label={spendTexts.requestsOf(name)}>{name}</Link>
      {shadow && <> <Badge tone="neutral">{spendTexts.shadow}</Badge></>}
    </>
  );
}
