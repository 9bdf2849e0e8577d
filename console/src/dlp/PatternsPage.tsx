import { getRouteApi } from "@tanstack/react-router";
import { Regex } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import styles from "../parts/rules.module.css";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { dlpTexts, patternTexts, suppressionTexts } from "../texts/dlp";
import { type CustomPattern, type PatternFilters, type PatternSort, useCustomPatterns, useDeletePattern, useSetPatternEnabled } from "./customization";
import { DlpViews } from "./DlpViews";
import { PatternForm } from "./PatternForm";
import { TONES } from "./tones";

const route = getRouteApi("/dlp-rules/patterns");
const creation: Editor = (close) => <PatternForm onDone={close} />;

export function PatternsPage() {
  const patterns = patternTexts;
  const { administers } = useRights();
  const { page = 1, sort = "created_at", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useCustomPatterns(filters, sort, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: PatternFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={patterns.title} views={<DlpViews />}
      actions={administers && <NewRuleButton label={patterns.new} title={patterns.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={dlpTexts.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={patterns.title} list={list} columns={columns} rowId={(pattern) => pattern.id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as PatternSort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={Regex} title={patterns.empty} text={patterns.emptyText} />}
      />
    </Page>
  );
}

function columnsOf(administers: boolean): Column<CustomPattern>[] {
  const { rules } = texts;
  const dlp = dlpTexts;
  const patterns = patternTexts;
  const suppressions = suppressionTexts;
  const columns: Column<CustomPattern>[] = [
    { id: "name", header: rules.name, meta: { width: "40%", sort: "name" }, cell: ({ row }) => <RuleName name={row.original.name} detail={row.original.pattern} code /> },
    { id: "action", header: rules.action, cell: ({ row }) => <Badge tone={TONES[row.original.action_tier]}>{dlp.tiers[row.original.action_tier]}</Badge> },
    { id: "category", header: patterns.category, meta: { hideBelow: "desk" }, cell: ({ row }) => suppressions.categories[row.original.category] },
    { id: "entity", header: dlp.entityType, meta: { hideBelow: "tablet", sort: "entity_type" }, cell: ({ row }) => <code className={styles["entity"]} title={row.original.entity_type}>{row.original.entity_type}</code> },
    { id: "status", header: rules.status, meta: { hideBelow: "tablet" }, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((pattern) => <Actions pattern={pattern} />));
  return columns;
}

function Actions({ pattern }: { pattern: CustomPattern }) {
  const setEnabled = useSetPatternEnabled(pattern.id);
  const remove = useDeletePattern(pattern.id);
  return (
    <RuleMenu
      name={pattern.name} enabled={pattern.enabled} editor={(close) => <PatternForm pattern={pattern} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!pattern.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    />
  );
}
