import { getRouteApi } from "@tanstack/react-router";
import { FlaskConical, Route as RouteIcon } from "lucide-react";
import { useMemo, useState } from "react";
import { useRights } from "../api/queries";
import { useGroupNames } from "../groups/api";
import { GroupFilter } from "../groups/GroupSelect";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { dollars } from "../parts/format";
import { MenuItem } from "../parts/Menu";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { filterTexts } from "../texts/filters";
import { routingTexts } from "../texts/routing";
import { type RoutingFilters, type RoutingPolicy, type Sort, STRATEGIES, type Strategy, useDeletePolicy, useRoutingPolicyPage, useSetEnabled } from "./api";
import { PolicyForm } from "./PolicyForm";
import { SimulationPanel } from "./SimulationPanel";

const route = getRouteApi("/routing");
const creation: Editor = (close) => <PolicyForm onDone={close} />;

/** The routing policies, and a simulation of one of them with a request from entered values. */
export function RoutingPage() {
  const routing = routingTexts;
  const { administers } = useRights();
  const { page = 1, sort = "created_at", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useRoutingPolicyPage(filters, sort, page);
  const [simulated, setSimulated] = useState<string | null>(null);
  const columns = useMemo(() => columnsOf(administers, setSimulated), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: RoutingFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={routing.title}
      actions={administers && <NewRuleButton label={routing.new} title={routing.newTitle} editor={creation} />}
      filterBar={<Filters filters={filters} isFiltered={isFiltered} onChange={updateFilters} onClear={clear} />}
    >
      <ListPanel
        label={routing.title} list={list} columns={columns} rowId={(policy) => policy.policy_id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={RouteIcon} title={routing.empty} text={routing.emptyText} />}
      />
      {administers && <SimulationPanel chosen={simulated} onChoose={setSimulated} />}
    </Page>
  );
}

function Filters({ filters, isFiltered, onChange, onClear }: {
  filters: RoutingFilters;
  isFiltered: boolean;
  onChange: (changed: RoutingFilters) => void;
  onClear: () => void;
}) {
  const { rules } = texts;
  const routing = routingTexts;
  return (
    <>
      <FilterField label={rules.search} placeholder={rules.searchPlaceholder} value={filters.search} onChange={(search) => onChange({ search })} />
      <FilterSelect
        label={rules.status} value={filters.enabled === undefined ? "" : String(filters.enabled)}
        onChange={({ target }) => onChange({ enabled: target.value === "" ? undefined : target.value === "true" })}
      >
        <option value="">{rules.anyStatus}</option>
        <option value="true">{rules.enabled}</option>
        <option value="false">{rules.disabled}</option>
      </FilterSelect>
      <FilterSelect label={routing.strategy} value={filters.strategy ?? ""} onChange={({ target }) => onChange({ strategy: (target.value || undefined) as Strategy | undefined })}>
        <option value="">{routing.anyStrategy}</option>
        {STRATEGIES.map((strategy) => <option key={strategy} value={strategy}>{routing.strategies[strategy]}</option>)}
      </FilterSelect>
      <GroupFilter label={routing.groups} value={filters.group ?? ""} onChange={(group) => onChange({ group: group || undefined })}>
        <option value="">{routing.anyGroup}</option>
      </GroupFilter>
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}

function columnsOf(administers: boolean, onSimulate: (id: string) => void): Column<RoutingPolicy>[] {
  const { rules } = texts;
  const routing = routingTexts;
  const columns: Column<RoutingPolicy>[] = [
    {
      id: "name", header: rules.name, meta: { width: "38%", sort: "name" },
      cell: ({ row: { original: { name, description, fallback_chain: chain } } }) => (
        <RuleName name={name} hint={description ?? name} detail={chain.length === 0 ? description ?? "" : routing.fallbacks(chain.map(({ provider, model_id: id }) => `${provider}/${id}`))} />
      ),
    },
    { id: "strategy", header: routing.strategy, meta: { hideBelow: "tablet", sort: "strategy" }, cell: ({ row }) => routing.strategies[row.original.strategy] },
    { id: "groups", header: routing.groups, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Groups ids={row.original.group_ids} /> },
    { id: "cap", header: routing.capShort, meta: { hideBelow: "desk" }, cell: ({ row }) => <Cap policy={row.original} /> },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((policy) => <Actions policy={policy} onSimulate={onSimulate} />));
  return columns;
}

/** The number of group names that a row lists. It shows only the number of the other groups. */
const SHOWN_GROUPS = 2;

function Groups({ ids }: { ids: string[] }) {
  const routing = routingTexts;
  const known = useGroupNames(ids.slice(0, SHOWN_GROUPS));
  if (ids.length === 0) return routing.everybody;
  const names = ids.slice(0, SHOWN_GROUPS).map((id) => known.get(id) ?? filterTexts.unknownGroup);
  return <span title={names.join("\n")}>{routing.someGroups(names, ids.length - SHOWN_GROUPS)}</span>;
}

function Cap({ policy: { cost_cap: cap } }: { policy: RoutingPolicy }) {
  return cap === null ? texts.none : <span title={routingTexts.capActions[cap.action_on_exceed]}>{dollars(cap.max_cost_per_request_usd)}</span>;
}

function Actions({ policy, onSimulate }: { policy: RoutingPolicy; onSimulate: (id: string) => void }) {
  const setEnabled = useSetEnabled(policy.policy_id);
  const remove = useDeletePolicy(policy.policy_id);
  return (
    <RuleMenu
      name={policy.name} enabled={policy.enabled} deleteText={routingTexts.deleteText}
      editor={(close) => <PolicyForm policy={policy} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!policy.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={() => onSimulate(policy.policy_id)}><FlaskConical aria-hidden size={15} />{routingTexts.simulate}</MenuItem>
    </RuleMenu>
  );
}
