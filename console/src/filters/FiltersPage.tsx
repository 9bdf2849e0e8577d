import { getRouteApi } from "@tanstack/react-router";
import { Filter } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { useGroupNames } from "../groups/api";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { filterTexts } from "../texts/filters";
import { type ContentFilter, type Filters, type Sort, TYPES, useDeleteFilter, useFilters, useSetEnabled } from "./api";
import { FilterForm } from "./FilterForm";
import { TestPanel } from "./TestPanel";

const route = getRouteApi("/content-filters");
const creation: Editor = (close) => <FilterForm onDone={close} />;

/** The content filters, by default in the order of evaluation. */
export function FiltersPage() {
  const { administers } = useRights();
  const { page = 1, sort = "priority", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useFilters(filters, sort, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: Filters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={filterTexts.title}
      actions={administers && <NewRuleButton label={filterTexts.new} title={filterTexts.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <ChoiceFilter
            label={filterTexts.type} any={filterTexts.anyType} values={TYPES} nameOf={(type) => filterTexts.types[type]}
            value={filters.type} onChange={(type) => updateFilters({ type })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={filterTexts.title} list={list} columns={columns} rowId={(row) => row.id} page={page} sort={sort} isFiltered={isFiltered} onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={Filter} title={filterTexts.empty} text={filterTexts.emptyText} />}
      />
      {administers && <TestPanel />}
    </Page>
  );
}

function columnsOf(administers: boolean): Column<ContentFilter>[] {
  const { rules } = texts;
  const filters = filterTexts;
  const columns: Column<ContentFilter>[] = [
    { id: "priority", header: rules.priority, meta: { width: "5rem", hideBelow: "tablet", sort: "priority" }, cell: ({ row }) => row.original.priority },
    {
      id: "name", header: rules.name, meta: { width: "44%", sort: "name" },
      cell: ({ row }) => <Name filter={row.original} />,
    },
    { id: "type", header: filters.type, meta: { hideBelow: "tablet" }, cell: ({ row }) => filters.types[row.original.filter_type] },
    { id: "scope", header: filters.scope, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Scope groupId={row.original.group_id} /> },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((filter) => <Actions filter={filter} />));
  return columns;
}

/** Shows the name of a filter, and its keywords, topics or instruction. */
function Name({ filter: { name, description, config } }: { filter: ContentFilter }) {
  const names = config["keywords"] ?? config["topics"];
  const detail = Array.isArray(names) ? names.join(", ") : String(config["instruction"] ?? "");
  return <RuleName name={name} hint={description ?? name} detail={detail} />;
}

function Scope({ groupId }: { groupId: string | null }) {
  const names = useGroupNames(groupId === null ? [] : [groupId]);
  if (groupId === null) return filterTexts.everybody;
  return names.get(groupId) ?? filterTexts.unknownGroup;
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
