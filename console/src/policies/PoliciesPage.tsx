import { Scale } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { type Policy, useDeletePolicy, usePolicies, useSetEnabled } from "./api";
import { PolicyForm } from "./PolicyForm";
import { TestPanel } from "./TestPanel";
import { TONES } from "./tones";

const creation: Editor = (close) => <PolicyForm onDone={close} />;

/** All policies in the order of evaluation. */
export function PoliciesPage() {
  const { policies } = texts;
  const { administers } = useRights();
  const list = usePolicies();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  return (
    <Page title={policies.title} actions={administers && <NewRuleButton label={policies.new} title={policies.newTitle} editor={creation} />}>
      <Panel label={policies.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={Scale} title={policies.empty} text={policies.emptyText} />
        ) : (
          <DataTable label={policies.title} columns={columns} rows={list.data} idOf={(policy) => policy.id} />
        )}
      </Panel>
      {administers && <TestPanel />}
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Policy>[] {
  const { policies, rules } = texts;
  const columns: Column<Policy>[] = [
    { id: "priority", header: rules.priority, meta: { width: "4rem", hideBelow: "tablet" }, cell: ({ row }) => row.original.priority },
    {
      id: "name", header: rules.name, meta: { width: "44%" },
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
  return <span title={target ?? undefined}><Badge tone={TONES[action]}>{texts.policies.actions[action]}</Badge></span>;
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
