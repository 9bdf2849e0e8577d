import { getRouteApi } from "@tanstack/react-router";
import { FlaskConical, Route as RouteIcon, SearchX } from "lucide-react";
import { useMemo, useState } from "react";
import { useRights } from "../api/queries";
import { useGroups } from "../groups/api";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { dollars } from "../parts/format";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { routingTexts } from "../texts/routing";
import { type RoutingFilters, type RoutingPolicy, STRATEGIES, type Strategy, useDeletePolicy, useRoutingPolicies, useSetEnabled } from "./api";
import { PolicyForm } from "./PolicyForm";
import { SimulationPanel } from "./SimulationPanel";

const route = getRouteApi("/routing");
const creation: Editor = (close) => <PolicyForm onDone={close} />;

/** The routing policies, the oldest first, and what one of them does with a described request. */
export function RoutingPage() {
  const { rules } = texts;
  const routing = routingTexts;
  const { administers } = useRights();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useRoutingPolicies(filters);
  const [simulated, setSimulated] = useState<string | null>(null);
  const columns = useMemo(() => columnsOf(administers, setSimulated), [administers]);
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={routing.title}
      actions={administers && <NewRuleButton label={routing.new} title={routing.newTitle} editor={creation} />}
      bar={<Filters filters={filters} isFiltered={isFiltered} onChange={(changed) => void navigate({ search: { ...filters, ...changed } })} onClear={clear} />}
    >
      <Panel label={routing.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 && isFiltered ? (
          <EmptyState icon={SearchX} title={rules.noneMatch} text={rules.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.length === 0 ? (
          <EmptyState icon={RouteIcon} title={routing.empty} text={routing.emptyText} />
        ) : (
          <DataTable label={routing.title} columns={columns} rows={list.data} idOf={(policy) => policy.policy_id} stale={list.isPlaceholderData} />
        )}
      </Panel>
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
  const groups = useGroups();
  return (
    <>
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
      <FilterSelect label={routing.groups} value={filters.group ?? ""} onChange={({ target }) => onChange({ group: target.value || undefined })}>
        <option value="">{routing.anyGroup}</option>
        {groups.data?.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
      </FilterSelect>
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}

function columnsOf(administers: boolean, onSimulate: (id: string) => void): Column<RoutingPolicy>[] {
  const { rules } = texts;
  const routing = routingTexts;
  const columns: Column<RoutingPolicy>[] = [
    {
      id: "name", header: rules.name, meta: { width: "38%" },
      cell: ({ row: { original: { name, description, fallback_chain: chain } } }) => (
        <RuleName name={name} hint={description ?? name} detail={chain.length === 0 ? description ?? "" : routing.fallbacks(chain.map(({ provider, model_id: id }) => `${provider}/${id}`))} />
      ),
    },
    { id: "strategy", header: routing.strategy, meta: { hideBelow: "tablet" }, cell: ({ row }) => routing.strategies[row.original.strategy] },
    { id: "groups", header: routing.groups, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Groups ids={row.original.group_ids} /> },
    { id: "cap", header: routing.capShort, meta: { hideBelow: "desk" }, cell: ({ row }) => <Cap policy={row.original} /> },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((policy) => <Actions policy={policy} onSimulate={onSimulate} />));
  return columns;
}

/** Names of groups that a row shows before it counts the rest. */
const SHOWN_GROUPS = 2;

function Groups({ ids }: { ids: string[] }) {
  const routing = routingTexts;
  const groups = useGroups();
  if (ids.length === 0) return routing.everybody;
  const names = ids.map((id) => groups.data?.find((group) => group.id === id)?.name ?? texts.filters.unknownGroup);
  return <span title={names.join("\n")}>{routing.someGroups(names.slice(0, SHOWN_GROUPS), names.length - SHOWN_GROUPS)}</span>;
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
