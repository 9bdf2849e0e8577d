import { getRouteApi, Link } from "@tanstack/react-router";
import { BadgeCheck, FileText, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Figure, FigureRow } from "../overview/Figures";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FileButton } from "../parts/FileButton";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { percent, wholeNumber } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { type Editor, EnabledBadge, NewRuleButton, RuleName } from "../parts/rules";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState } from "../parts/states";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { complianceTexts } from "../texts/compliance";
import {
  type Bundle, type BundleFilters, DEFAULT_DAYS, FRAMEWORKS, PAGE_SIZE, type PeriodDays, PERIODS_DAYS, type Sort, type Summary,
  useBundle, useBundles, useExportBundles, useReport, useSummary,
} from "./api";
import { BundleActions } from "./BundleActions";
import { BundleDialog } from "./BundleDialog";
import { BundleForm } from "./BundleForm";
import { DEFAULT_SORT, STATES } from "./choices";
import styles from "./CompliancePage.module.css";
import { ImportButton } from "./ImportButton";
import { StateBadge } from "./StateBadge";

const route = getRouteApi("/compliance");
const creation: Editor = (close) => <BundleForm onDone={close} />;

/** The compliance bundles, with their findings in a period. */
export function CompliancePage() {
  const compliance = complianceTexts;
  const { administers } = useRights();
  const { days = DEFAULT_DAYS, page = 1, bundle: openId, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const bundles = useBundles(filters, page);
  const summary = useSummary(days);
  const { open, close } = useMemo(() => ({
    open: ({ id }: Bundle) => void navigate({ search: (now) => ({ ...now, bundle: id }) }),
    close: () => void navigate({ search: ({ bundle: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, summary.data, open), [administers, summary.data, open]);
  const isFiltered = [filters.search, filters.framework, filters.state, filters.enabled].some((value) => value !== undefined);
  const updateFilters = (changed: BundleFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => updateFilters({ search: undefined, framework: undefined, state: undefined, enabled: undefined });
  const opened = useOpenRow(openId, bundles.data?.rows, useBundle);
  return (
    <Page
      title={compliance.title}
      actions={
        <>
          <FileButton file={useReport(days)} name={`compliance-report-${days}-days.html`} icon={FileText} label={compliance.report} />
          <FileButton file={useExportBundles()} name="bundles.json" label={compliance.export} />
          {administers && <ImportButton />}
          {administers && <NewRuleButton label={compliance.new} title={compliance.newTitle} editor={creation} />}
        </>
      }
      filterBar={
        <>
          <Segments label={compliance.period}>
            {PERIODS_DAYS.map((period) => (
              <Link
                key={period} from="/compliance" to="/compliance" aria-current={period === days ? "true" : undefined}
                search={(now) => ({ ...now, days: period === DEFAULT_DAYS ? undefined : period })}
              >
                {compliance.periods[period]}
              </Link>
            ))}
          </Segments>
          <FilterField
            label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          <ChoiceFilter
            label={compliance.framework} any={compliance.anyFramework} values={FRAMEWORKS} nameOf={(framework) => framework}
            value={filters.framework} onChange={(framework) => updateFilters({ framework })}
          />
          <ChoiceFilter
            label={compliance.state} any={compliance.anyState} values={STATES} nameOf={(state) => compliance.stateFilters[state]}
            value={filters.state} onChange={(state) => updateFilters({ state })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <div className={styles["body"]}>
        <Figures summary={summary.data} error={summary.error} onRetry={() => void summary.refetch()} days={days} />
        <Panel label={compliance.bundles}>
          {bundles.error && bundles.data === undefined ? (
            <ErrorState error={bundles.error} onRetry={() => void bundles.refetch()} />
          ) : bundles.data?.total === 0 && isFiltered ? (
            <EmptyState icon={SearchX} title={texts.rules.noneMatch} text={texts.rules.noneMatchText}>
              <Button onClick={clear}>{texts.clear}</Button>
            </EmptyState>
          ) : bundles.data?.total === 0 ? (
            <EmptyState icon={BadgeCheck} title={compliance.empty} text={compliance.emptyText} />
          ) : (
            <>
              <DataTable
                label={compliance.bundles} columns={columns} rows={bundles.data?.rows} rowId={(bundle) => bundle.id}
                selectedId={openId} onOpen={open} stale={bundles.isPlaceholderData}
                sort={filters.sort ?? DEFAULT_SORT} onSort={(sort) => updateFilters({ sort: sort as Sort })}
              />
              {bundles.data !== undefined && (page > 1 || bundles.data.total > PAGE_SIZE) && (
                <Pager
                  page={page} size={PAGE_SIZE} total={bundles.data.total}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
                />
              )}
            </>
          )}
        </Panel>
        {summary.data !== undefined && summary.data.top_triggers.length > 0 && <Triggers triggers={summary.data.top_triggers} />}
      </div>
      <BundleDialog bundle={opened.row} days={days} onClose={close} />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function Figures({ summary, error, onRetry, days }: { summary: Summary | undefined; error: unknown; onRetry: () => void; days: PeriodDays }) {
  const compliance = complianceTexts;
  if (error && summary === undefined) return <Panel label={compliance.findings}><ErrorState error={error} onRetry={onRetry} /></Panel>;
  const when = compliance.periods[days];
  return (
    <FigureRow>
      <Figure name={compliance.findings} when={when} value={summary && wholeNumber(summary.total_events)} detail={compliance.findingsHint} />
      <Figure name={compliance.coverage} when={when} value={summary && percent(summary.coverage_percent / 100)} detail={compliance.coverageHint} />
      <Figure name={compliance.activeBundles} when="" value={summary && wholeNumber(summary.bundles.length)} />
    </FigureRow>
  );
}

function Triggers({ triggers }: { triggers: Summary["top_triggers"] }) {
  const compliance = complianceTexts;
  return (
    <Panel title={compliance.triggers}>
      <ol className={styles["triggers"]}>
        {triggers.map(({ rule_name: rule, bundle, event_count: count }) => (
          <li key={`${rule}\n${bundle}`} className={styles["trigger"]}>
            <span className={styles["rule"]}>{rule} <span className={styles["muted"]}>{bundle}</span></span>
            <span>{wholeNumber(count)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function columnsOf(administers: boolean, summary: Summary | undefined, open: (bundle: Bundle) => void): Column<Bundle>[] {
  const { rules } = texts;
  const compliance = complianceTexts;
  const events = new Map(summary?.bundles.map(({ bundle_id: id, total_events: total }) => [id, total]));
  const columns: Column<Bundle>[] = [
    {
      id: "name", header: rules.name, meta: { width: "40%", sort: "name" },
      cell: ({ row: { original: bundle } }) => (
        <RuleName
          name={bundle.name} detail={bundle.seed_rule_mappings.join(", ")}
          opener={{ id: bundle.id, label: compliance.open(bundle.name), onOpen: () => open(bundle) }}
        />
      ),
    },
    { id: "framework", header: compliance.framework, meta: { hideBelow: "tablet", sort: "regulatory_framework" }, cell: ({ row: { original } }) => `${original.regulatory_framework} ${original.version}` },
    { id: "state", header: compliance.state, cell: ({ row }) => <StateBadge bundle={row.original} /> },
    { id: "enabled", header: rules.status, meta: { hideBelow: "tablet" }, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    {
      id: "events", header: compliance.findings, meta: { align: "end", hideBelow: "desk" },
      cell: ({ row }) => wholeNumber(events.get(row.original.id)),
    },
  ];
  if (administers) columns.push(actionsColumn((bundle) => <BundleActions bundle={bundle} />));
  return columns;
}
