import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField } from "../parts/fields";
import { texts } from "../texts";
import { budgetTexts } from "../texts/budgets";
import { type Budget, type NewBudget, type Period, PERIODS, type ScopeType } from "./api";
import { LimitFields, limitsOf, limitTexts, type LimitValues } from "./LimitFields";
import { ScopeFields } from "./ScopeFields";

export interface BudgetFields extends LimitValues {
  scope_type: ScopeType;
  /** The id of the group, user, API key or OAuth client. It is empty until the user selects one, and for a budget of
   * the whole organization. */
  scope_id: string;
  period: Period;
  action: Budget["action"];
}

/** Creates and edits a budget. The scope and the period of an existing budget cannot be changed. */
export function BudgetForm({ budget, onSubmit, onCancel }: {
  budget?: Budget;
  onSubmit: (body: NewBudget) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { rules } = texts;
  const budgets = budgetTexts;
  const form = useForm<BudgetFields>({
    defaultValues: {
      scope_type: budget?.scope_type ?? "tenant",
      scope_id: budget?.scope_id ?? "",
      period: budget?.period ?? "month",
      ...limitTexts(budget),
      action: budget?.action ?? "block",
    },
  });
  const { errors } = form.formState;
  return (
    <DialogForm form={form} action={budget === undefined ? rules.create : rules.save} onSubmit={(fields) => onSubmit(bodyOf(fields))} onCancel={onCancel}>
      {budget === undefined && (
        <>
          <ScopeFields form={form} />
          <SelectField label={budgets.period} hint={budgets.periodHint} fault={errors.period?.message} {...form.register("period")}>
            {PERIODS.map((period) => <option key={period} value={period}>{budgets.periods[period]}</option>)}
          </SelectField>
        </>
      )}
      <LimitFields register={form.register} errors={errors} />
      <SelectField label={budgets.action} hint={budgets.actionHints[form.watch("action")]} fault={errors.action?.message} {...form.register("action")}>
        <option value="block">{budgets.actions.block}</option>
        <option value="warn">{budgets.actions.warn}</option>
      </SelectField>
    </DialogForm>
  );
}

function bodyOf({ scope_id, ...fields }: BudgetFields): NewBudget {
  return { ...fields, scope_id: scope_id || null, ...limitsOf(fields) };
}
