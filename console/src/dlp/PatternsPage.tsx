import { Regex } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import styles from "../parts/rules.module.css";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { type CustomPattern, useCustomPatterns, useDeletePattern, useSetPatternEnabled } from "./customization";
import { DlpViews } from "./DlpViews";
import { PatternForm } from "./PatternForm";
import { TONES } from "./tones";

const creation: Editor = (close) => <PatternForm onDone={close} />;

export function PatternsPage() {
  const { patterns } = texts;
  const { administers } = useRights();
  const list = useCustomPatterns();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  return (
    <Page
      title={patterns.title} views={<DlpViews />}
      actions={administers && <NewRuleButton label={patterns.new} title={patterns.newTitle} editor={creation} />}
    >
      <Panel label={patterns.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={Regex} title={patterns.empty} text={patterns.emptyText} />
        ) : (
          <DataTable label={patterns.title} columns={columns} rows={list.data} idOf={(pattern) => pattern.id} />
        )}
      </Panel>
    </Page>
  );
}

function columnsOf(administers: boolean): Column<CustomPattern>[] {
  const { dlp, patterns, rules, suppressions } = texts;
  const columns: Column<CustomPattern>[] = [
    { id: "name", header: rules.name, meta: { width: "40%" }, cell: ({ row }) => <RuleName name={row.original.name} detail={row.original.pattern} code /> },
    { id: "action", header: rules.action, cell: ({ row }) => <Badge tone={TONES[row.original.action_tier]}>{dlp.tiers[row.original.action_tier]}</Badge> },
    { id: "category", header: patterns.category, meta: { hideBelow: "desk" }, cell: ({ row }) => suppressions.categories[row.original.category] },
    { id: "entity", header: dlp.entityType, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code className={styles["entity"]} title={row.original.entity_type}>{row.original.entity_type}</code> },
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
