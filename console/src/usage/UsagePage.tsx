import { getRouteApi, Link } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import { useMemo } from "react";
import { useRights, useSession } from "../api/queries";
import { Figure, FigureRow } from "../overview/Figures";
import { buttonClass } from "../parts/Button";
import { type Column, DataTable } from "../parts/DataTable";
import { count, dollars, wholeNumber } from "../parts/format";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { usageTexts } from "../texts/usage";
import { type UsageModel, type UsagePeriod, useUsageSummary } from "./api";
import { Budgets } from "./Budgets";
import { Days } from "./Days";
import styles from "./UsagePage.module.css";

const PERIODS: readonly [UsagePeriod, string][] = [
  ["day", usageTexts.today], ["week", usageTexts.week], ["month", usageTexts.month],
];

const route = getRouteApi("/usage");

/** The user's own usage in a period, and the remaining amounts of the budgets that apply. */
export function UsagePage() {
  const { period = "month", page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const summary = useUsageSummary(period, page);
  const { data } = summary;
  const when = PERIODS.find(([value]) => value === period)?.[1] ?? "";
  return (
    <Page
      title={usageTexts.title}
      actions={
        <Segments label={usageTexts.period}>
          {PERIODS.map(([value, name]) => (
            <Link key={value} to="/usage" search={value === "month" ? {} : { period: value }} activeOptions={{ exact: true }}>{name}</Link>
          ))}
        </Segments>
      }
    >
      {summary.error && data === undefined ? (
        <Panel label={usageTexts.title}><ErrorState error={summary.error} onRetry={() => void summary.refetch()} /></Panel>
      ) : (
        <div className={styles["page"]}>
          <FigureRow>
            <Figure name={usageTexts.requests} when={when} value={data && wholeNumber(data.total.requests)} />
            <Figure name={usageTexts.input} when={when} value={data && count(data.total.input_tokens + data.total.cached_tokens)} detail={data && data.total.cached_tokens > 0 && usageTexts.cached(count(data.total.cached_tokens))} />
            <Figure name={usageTexts.output} when={when} value={data && count(data.total.output_tokens)} />
            <Figure name={usageTexts.cost} when={when} value={data && dollars(data.total.cost_usd)} />
          </FigureRow>
          {data && data.budgets.length > 0 && <Budgets budgets={data.budgets} />}
          {data && period !== "day" && data.total.requests > 0 && <Days days={data.days} zone={data.time_zone} />}
          <Models
            models={data?.models} total={data?.modelCount ?? 0} stale={summary.isPlaceholderData} period={period} page={page}
            onPage={(next) => void navigate({ search: (search) => ({ ...search, page: next === 1 ? undefined : next }) })}
          />
        </div>
      )}
    </Page>
  );
}

/** A page of the models that the user has used. `total` is the number of all of them. */
function Models({ models, total, stale, period, page, onPage }: {
  models: UsageModel[] | undefined;
  total: number;
  stale: boolean;
  period: UsagePeriod;
  page: number;
  onPage: (page: number) => void;
}) {
  const { id } = useSession().user;
  const { seesAll } = useRights();
  const columns = useMemo((): Column<UsageModel>[] => [
    { id: "model", header: usageTexts.model, meta: { width: "40%" }, cell: ({ row }) => <Model model={row.original} user={seesAll ? id : undefined} period={period} /> },
    { id: "requests", header: usageTexts.requests, meta: { align: "end" }, cell: ({ row }) => count(row.original.requests) },
    { id: "input", header: usageTexts.input, meta: { align: "end", hideBelow: "tablet" }, cell: ({ row }) => count(row.original.input_tokens + row.original.cached_tokens) },
    { id: "output", header: usageTexts.output, meta: { align: "end", hideBelow: "tablet" }, cell: ({ row }) => count(row.original.output_tokens) },
    { id: "cost", header: usageTexts.cost, meta: { align: "end" }, cell: ({ row }) => dollars(row.original.cost_usd) },
  ], [id, seesAll, period]);
  return (
    <Panel
      title={usageTexts.models}
      actions={<Link to="/access-requests" search={{ ask: "model" }} className={styles["ask"]}>{usageTexts.askModel}</Link>}
    >
      {models !== undefined && total === 0 ? (
        <EmptyState icon={ChartColumn} title={usageTexts.empty} text={usageTexts.emptyText}>
          <Link to="/start" className={buttonClass("primary")}>{texts.overview.firstSteps}</Link>
        </EmptyState>
      ) : (
        <>
          <DataTable label={usageTexts.models} columns={columns} rows={models} rowId={modelId} stale={stale} />
          {(page > 1 || total > PAGE_SIZE) && <Pager name={usageTexts.models} page={page} size={PAGE_SIZE} total={total} onPage={onPage} />}
        </>
      )}
    </Panel>
  );
}

function modelId({ provider, model_id: model }: UsageModel): string {
  return `${provider ?? ""}/${model ?? ""}`;
}

/** The model as a link to the user's requests to this model. `user` is set if the list of requests has other users' too. */
function Model({ model: { provider, model_id: model }, user, period }: { model: UsageModel; user: string | undefined; period: UsagePeriod }) {
  if (provider === null || model === null) return <span className={styles["none"]}>{usageTexts.noModel}</span>;
  return (
    <Link className={styles["model"]} to="/requests" search={{ user, provider, model, period }} title={`${provider}/${model}`}>
      <span className={styles["provider"]}>{provider} / </span>{model}
    </Link>
  );
}
