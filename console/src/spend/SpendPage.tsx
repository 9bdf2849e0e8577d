import { getRouteApi } from "@tanstack/react-router";
import { ChartPie } from "lucide-react";
import { useMemo } from "react";
import { useUserName } from "../api/users";
import { useGroup } from "../groups/api";
import { Button } from "../parts/Button";
import { Chip } from "../parts/Chip";
import { DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { count, dollars } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { DayRange } from "../parts/TimeRange";
import { texts } from "../texts";
import { spendTexts } from "../texts/spend";
import { AliasSpend } from "./AliasSpend";
import { DEFAULT_SORT, PAGE_SIZE, type Sort, type SpendFilters, type SpendGrouping, type SpendPeriod, useSpend, utcDay } from "./api";
import { PERIODS, SORTS } from "./choices";
import { spendColumns } from "./columns";
import styles from "./SpendPage.module.css";
import { SpendViews } from "./SpendViews";

const route = getRouteApi("/spend");
const DEFAULT_CUSTOM_PERIOD_DAYS = 30;

/** Requests and cost by user, group, API key or model alias, in the selected period. */
export function SpendPage() {
  const { by: groupBy = "user" } = route.useSearch();
  return groupBy === "model_alias" ? <AliasSpend /> : <SpendList groupBy={groupBy} />;
}

function SpendList({ groupBy }: { groupBy: SpendGrouping }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { page = 1, by: _, alias: __, period = "month", sort: order, ...chosen } = search;
  const rest = { ...chosen, sort: SORTS.find((value) => value === order) };
  const filters: SpendFilters = { by: groupBy, period, ...rest };
  const list = useSpend(filters, page);
  const { data } = list;
  const total = data?.sum.cost_usd ?? 0;
  const columns = useMemo(() => spendColumns({ by: groupBy, period, from: rest.from, to: rest.to }, total), [groupBy, period, rest.from, rest.to, total]);
  const updateFilters = (changed: Partial<SpendFilters>) => void navigate({ search: { ...rest, by: groupBy, period, ...changed } });
  const isFiltered = rest.user !== undefined || rest.group !== undefined;

  return (
    <Page
      title={spendTexts.title}
      views={<SpendViews />}
      filterBar={
        <>
          <FilterSelect label={spendTexts.period} value={period} onChange={({ target }) => updateFilters(periodFilters(target.value as SpendPeriod))}>
            {PERIODS.map((value) => <option key={value} value={value}>{spendTexts.periods[value]}</option>)}
          </FilterSelect>
          {period === "custom" && <DayRange fromLabel={spendTexts.from} toLabel={spendTexts.to} from={rest.from} to={rest.to} onChange={updateFilters} />}
          {rest.user !== undefined && <UserChip id={rest.user} onRemove={() => updateFilters({ user: undefined })} />}
          {rest.group !== undefined && <GroupChip id={rest.group} onRemove={() => updateFilters({ group: undefined })} />}
          {isFiltered && <Button look="quiet" size="small" onClick={() => updateFilters({ user: undefined, group: undefined })}>{texts.clear}</Button>}
          {data !== undefined && data.total > 0 && (
            <span className={styles["sum"]} role="status">
              {spendTexts.sum(dollars(total), count(data.sum.requests), count(data.sum.input_tokens + data.sum.output_tokens + data.sum.cached_tokens))}
            </span>
          )}
        </>
      }
    >
      <Panel label={spendTexts.title}>
        {list.error && data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : data?.total === 0 ? (
          <EmptyState icon={ChartPie} title={spendTexts.empty} text={spendTexts.emptyText} />
        ) : (
          <>
            <DataTable
              label={spendTexts.groupings[groupBy]} columns={columns} rows={data?.items} rowId={(item) => item.id ?? "none"} stale={list.isPlaceholderData}
              sort={filters.sort ?? DEFAULT_SORT} onSort={(sort) => updateFilters({ sort: sort as Sort })}
            />
            {data !== undefined && (
              <Pager page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => void navigate({ search: { ...filters, page: next } })} />
            )}
          </>
        )}
      </Panel>
    </Page>
  );
}

/** Returns the filters for a period. A custom period initially covers the last 30 days. */
function periodFilters(period: SpendPeriod): Partial<SpendFilters> {
  if (period !== "custom") return { period, from: undefined, to: undefined };
  return { period, from: utcDay(DEFAULT_CUSTOM_PERIOD_DAYS - 1), to: utcDay(0) };
}

function UserChip({ id, onRemove }: { id: string; onRemove: () => void }) {
  const text = spendTexts.filtered(spendTexts.ofUser, useUserName(id) ?? id);
  return <Chip text={text} removeLabel={spendTexts.removeFilter(spendTexts.ofUser)} onRemove={onRemove} />;
}

function GroupChip({ id, onRemove }: { id: string; onRemove: () => void }) {
  const { data } = useGroup(id);
  const text = spendTexts.filtered(spendTexts.ofGroup, data?.name ?? `${id.slice(0, 8)}…`);
  return <Chip text={text} removeLabel={spendTexts.removeFilter(spendTexts.ofGroup)} onRemove={onRemove} />;
}
