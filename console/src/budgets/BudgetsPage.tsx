import { getRouteApi } from "@tanstack/react-router";
import { PiggyBank } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { budgetTexts } from "../texts/budgets";
import { type Budget, SCOPE_TYPES, type ScopeType, type Sort, useBudgets, useCreateBudget, useDeleteBudget, useUpdateBudget } from "./api";
import { BudgetForm } from "./BudgetForm";
import { useScopeName } from "./scopes";
import { Spent } from "./Spent";

const route = getRouteApi("/budgets");

/** The budgets, with the amount spent of each limit. */
export function BudgetsPage() {
  const budgets = budgetTexts;
  const { administers } = useRights();
  const { scope, sort = "-created_at", page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useBudgets(scope, sort, page);
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const clear = () => void navigate({ search: {} });

  return (
    <Page
      title={budgets.title}
      actions={administers && <NewRuleButton label={budgets.new} title={budgets.newTitle} editor={(close) => <Creation onDone={close} />} />}
      filterBar={
        <>
          <FilterSelect
            label={budgets.scope} value={scope ?? ""}
            onChange={({ target }) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, scope: (target.value || undefined) as ScopeType | undefined }) })}
          >
            <option value="">{budgets.anyScope}</option>
            {SCOPE_TYPES.map((type) => <option key={type} value={type}>{budgets.scopes[type]}</option>)}
          </FilterSelect>
          {scope !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={budgets.title} list={list} columns={columns} rowId={(budget) => budget.id} page={page} sort={sort} isFiltered={scope !== undefined}
        onClear={clear} none={budgets.noneMatch}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={PiggyBank} title={budgets.empty} text={budgets.emptyText} />}
      />
    </Page>
  );
}

function columnsOf(administers: boolean): Column<Budget>[] {
  const budgets = budgetTexts;
  const columns: Column<Budget>[] = [
    { id: "scope", header: budgets.scope, meta: { width: "30%", sort: "scope_type" }, cell: ({ row }) => <Scope budget={row.original} /> },
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
  const { detailOf, scopes, periods } = budgetTexts;
  return <RuleName name={useScopeName(budget)} detail={detailOf(scopes[budget.scope_type], periods[budget.period])} />;
}

function Creation({ onDone }: { onDone: () => void }) {
  const create = useCreateBudget();
  return (
    <BudgetForm
      onCancel={onDone}
      onSubmit={async (body) => {
        await create.mutateAsync(body);
        toast(budgetTexts.created);
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
  const budgets = budgetTexts;
  const remove = useDeleteBudget(budget.id);
  const name = budgets.nameOf(useScopeName(budget), budgets.periods[budget.period]);
  return (
    <RuleMenu
      name={name} deleteText={budgets.deleteText} onDelete={() => remove.mutateAsync(undefined)}
      editor={(close) => <EditBudget budget={budget} name={name} onDone={close} />}
    />
  );
}
