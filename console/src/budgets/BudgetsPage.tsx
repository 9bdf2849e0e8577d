import { getRouteApi } from "@tanstack/react-router";
import { PiggyBank, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type Budget, PAGE_SIZE, SCOPE_TYPES, type ScopeType, useBudgets, useCreateBudget, useDeleteBudget, useUpdateBudget } from "./api";
import { BudgetForm } from "./BudgetForm";
import { useScopeName } from "./scopes";
import { Spent } from "./Spent";

const route = getRouteApi("/budgets");

/** Budgets, newest first, with what is spent of them. */
export function BudgetsPage() {
  const { budgets } = texts;
  const { administers } = useRights();
  const { scope, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useBudgets(scope, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const clear = () => void navigate({ search: {} });

  return (
    <Page
      title={budgets.title}
      actions={administers && <NewRuleButton label={budgets.new} title={budgets.newTitle} editor={(close) => <Creation onDone={close} />} />}
      bar={
        <>
          <FilterSelect
            label={budgets.scope} value={scope ?? ""}
            onChange={({ target }) => void navigate({ search: target.value === "" ? {} : { scope: target.value as ScopeType } })}
          >
            <option value="">{budgets.anyScope}</option>
            {SCOPE_TYPES.map((type) => <option key={type} value={type}>{budgets.scopes[type]}</option>)}
          </FilterSelect>
          {scope !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={budgets.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.total === 0 && scope !== undefined ? (
          <EmptyState icon={SearchX} title={budgets.noneMatch}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.total === 0 ? (
          <EmptyState icon={PiggyBank} title={budgets.empty} text={budgets.emptyText} />
        ) : (
          <>
            <DataTable label={budgets.title} columns={columns} rows={list.data?.items} idOf={(budget) => budget.id} stale={list.isPlaceholderData} />
            {list.data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={list.data.total}
                onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
              />
            )}
          </>
        )}
      </Panel>
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Budget>[] {
  const { budgets } = texts;
  const columns: Column<Budget>[] = [
    { id: "scope", header: budgets.scope, meta: { width: "30%" }, cell: ({ row }) => <Scope budget={row.original} /> },
    { id: "spent", header: budgets.spent, meta: { width: "34%" }, cell: ({ row }) => <Spent budget={row.original} /> },
    { id: "resets", header: budgets.resets, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.current.period_end} as="relative" /> },
    {
      id: "action", header: budgets.action, meta: { hideBelow: "tablet" },
      cell: ({ row: { original: { action } } }) => <Badge tone={action === "block" ? "danger" : "warning"}>{budgets.actionsShort[action]}</Badge>,
    },
  ];
  if (administers) columns.push(actionsColumn((budget) => <Actions budget={budget} />));
  return columns;
}

function Scope({ budget }: { budget: Budget }) {
  const { detailOf, scopes, periods } = texts.budgets;
  return <RuleName name={useScopeName(budget)} detail={detailOf(scopes[budget.scope_type], periods[budget.period])} />;
}

function Creation({ onDone }: { onDone: () => void }) {
  const create = useCreateBudget();
  return (
    <BudgetForm
      onCancel={onDone}
      onSubmit={async (body) => {
        await create.mutateAsync(body);
        toast(texts.budgets.created);
        onDone();
      }}
    />
  );
}

function EditBudget({ budget, name, onDone }: { budget: Budget; name: string; onDone: () => void }) {
  const update = useUpdateBudget(budget);
  return (
    <BudgetForm
      budget={budget} onCancel={onDone}
      onSubmit={async ({ limit_usd = null, limit_requests = null, limit_tokens = null, action = "block" }) => {
        await update.mutateAsync({ limit_usd, limit_requests, limit_tokens, action });
        toast(texts.rules.saved(name));
        onDone();
      }}
    />
  );
}

function Actions({ budget }: { budget: Budget }) {
  const { budgets } = texts;
  const remove = useDeleteBudget(budget.id);
  const name = budgets.nameOf(useScopeName(budget), budgets.periods[budget.period]);
  return (
    <RuleMenu
      name={name} deleteText={budgets.deleteText} onDelete={() => remove.mutateAsync(undefined)}
      editor={(close) => <EditBudget budget={budget} name={name} onDone={close} />}
    />
  );
}
