import { getRouteApi } from "@tanstack/react-router";
import { Scale } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { policyTexts } from "../texts/policies";
import { ACTIONS, type Policy, type PolicyFilters, type Sort, useDeletePolicy, usePolicies, useSetEnabled } from "./api";
import { PolicyForm } from "./PolicyForm";
import { TestPanel } from "./TestPanel";
import { TONES } from "./tones";

const route = getRouteApi("/policies");
const creation: Editor = (close) => <PolicyForm onDone={close} />;

/** The policies, by default in the order of evaluation. */
export function PoliciesPage() {
  const policies = policyTexts;
  const { administers } = useRights();
  const { page = 1, sort = "priority", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = usePolicies(filters, sort, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: PolicyFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={policies.title}
      actions={administers && <NewRuleButton label={policies.new} title={policies.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <ChoiceFilter
            label={texts.rules.action} any={policies.anyAction} values={ACTIONS} nameOf={(action) => policies.actions[action]}
            value={filters.action} onChange={(action) => updateFilters({ action })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={policies.title} list={list} columns={columns} rowId={(policy) => policy.id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={Scale} title={policies.empty} text={policies.emptyText} />}
      />
      {administers && <TestPanel />}
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Policy>[] {
  const { rules } = texts;
  const policies = policyTexts;
  const columns: Column<Policy>[] = [
    { id: "priority", header: rules.priority, meta: { width: "5rem", hideBelow: "tablet", sort: "priority" }, cell: ({ row }) => row.original.priority },
    {
      id: "name", header: rules.name, meta: { width: "44%", sort: "name" },
      cell: ({ row: { original: { name, description, condition } } }) => <RuleName name={name} hint={description ?? name} detail={condition} code />,
    },
    { id: "action", header: rules.action, cell: ({ row }) => <Action policy={row.original} /> },
    { id: "terminal", header: policies.afterMatch, meta: { hideBelow: "tablet" }, cell: ({ row }) => (row.original.terminal ? policies.stops : policies.continues) },
    { id: "status", header: rules.status, meta: { hideBelow: "tablet" }, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((policy) => <Actions policy={policy} />));
  return columns;
}

function Action({ policy: { action, route_to: target } }: { policy: Policy }) {
  return <><Badge tone={TONES[action]}>{policyTexts.actions[action]}</Badge>{target !== null && <> <code>{target}</code></>}</>;
}

function Actions({ policy }: { policy: Policy }) {
  const setEnabled = useSetEnabled(policy.id);
  const remove = useDeletePolicy(policy.id);
  return (
    <RuleMenu
      name={policy.name} enabled={policy.enabled} editor={(close) => <PolicyForm policy={policy} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!policy.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    />
  );
}
