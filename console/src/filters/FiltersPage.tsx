import { Filter } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { useGroups } from "../groups/api";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { type ContentFilter, useDeleteFilter, useFilters, useSetEnabled } from "./api";
import { FilterForm } from "./FilterForm";
import { TestPanel } from "./TestPanel";

const creation: Editor = (close) => <FilterForm onDone={close} />;

/** All content filters in the order of evaluation. */
export function FiltersPage() {
  const { filters } = texts;
  const { administers } = useRights();
  const list = useFilters();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  return (
    <Page title={filters.title} actions={administers && <NewRuleButton label={filters.new} title={filters.newTitle} editor={creation} />}>
      <Panel label={filters.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={Filter} title={filters.empty} text={filters.emptyText} />
        ) : (
          <DataTable label={filters.title} columns={columns} rows={list.data} idOf={(filter) => filter.id} />
        )}
      </Panel>
      {administers && <TestPanel />}
    </Page>
  );
}

function columnsOf(administers: boolean): Column<ContentFilter>[] {
  const { filters, rules } = texts;
  const columns: Column<ContentFilter>[] = [
    { id: "priority", header: rules.priority, meta: { width: "4rem", hideBelow: "tablet" }, cell: ({ row }) => row.original.priority },
    {
      id: "name", header: rules.name, meta: { width: "44%" },
      cell: ({ row }) => <Name filter={row.original} />,
    },
    { id: "type", header: filters.type, meta: { hideBelow: "tablet" }, cell: ({ row }) => filters.types[row.original.filter_type] },
    { id: "scope", header: filters.scope, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Scope groupId={row.original.group_id} /> },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((filter) => <Actions filter={filter} />));
  return columns;
}

/** The name, and what the filter looks for or says. */
function Name({ filter: { name, description, config } }: { filter: ContentFilter }) {
  const names = config["keywords"] ?? config["topics"];
  const detail = Array.isArray(names) ? names.join(", ") : String(config["instruction"] ?? "");
  return <RuleName name={name} hint={description ?? name} detail={detail} />;
}

function Scope({ groupId }: { groupId: string | null }) {
  const groups = useGroups();
  if (groupId === null) return texts.filters.everybody;
  return groups.data?.find(({ id }) => id === groupId)?.name ?? texts.filters.unknownGroup;
}

function Actions({ filter }: { filter: ContentFilter }) {
  const setEnabled = useSetEnabled(filter.id);
  const remove = useDeleteFilter(filter.id);
  return (
    <RuleMenu
      name={filter.name} enabled={filter.enabled} editor={(close) => <FilterForm filter={filter} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!filter.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    />
  );
}
