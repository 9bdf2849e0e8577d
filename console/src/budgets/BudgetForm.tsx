import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { type Budget, type NewBudget, type Period, PERIODS, type ScopeType } from "./api";
import { ScopeFields } from "./ScopeFields";

export interface BudgetFields {
  scope_type: ScopeType;
  /** Empty until it is chosen, and for the organization. */
  scope_id: string;
  period: Period;
  limit_usd: string;
  limit_requests: string;
  limit_tokens: string;
  action: Budget["action"];
}

/** Creates and edits a budget. What it is for, and its period, cannot be changed afterwards. */
export function BudgetForm({ budget, onSubmit, onCancel }: {
  budget?: Budget;
  onSubmit: (body: NewBudget) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { budgets, rules } = texts;
  const form = useForm<BudgetFields>({
    defaultValues: {
      scope_type: budget?.scope_type ?? "tenant",
      scope_id: budget?.scope_id ?? "",
      period: budget?.period ?? "month",
      limit_usd: budget?.limit_usd?.toString() ?? "",
      limit_requests: budget?.limit_requests?.toString() ?? "",
      limit_tokens: budget?.limit_tokens?.toString() ?? "",
      action: budget?.action ?? "block",
    },
  });
  const { errors } = form.formState;
  const whole = { pattern: { value: /^\d*$/, message: budgets.wholeNumber } };
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
      <Fields>
        <TextField
          label={budgets.limitDollars} inputMode="decimal" autoComplete="off" fault={errors.limit_usd?.message}
          {...form.register("limit_usd", { pattern: { value: /^\d*\.?\d*$/, message: budgets.number } })}
        />
        <TextField label={budgets.limitRequests} inputMode="numeric" autoComplete="off" fault={errors.limit_requests?.message} {...form.register("limit_requests", whole)} />
        <TextField
          label={budgets.limitTokens} hint={budgets.tokensHint} inputMode="numeric" autoComplete="off" fault={errors.limit_tokens?.message}
          {...form.register("limit_tokens", whole)}
        />
      </Fields>
      <SelectField label={budgets.action} hint={budgets.actionHints[form.watch("action")]} fault={errors.action?.message} {...form.register("action")}>
        <option value="block">{budgets.actions.block}</option>
        <option value="warn">{budgets.actions.warn}</option>
      </SelectField>
    </DialogForm>
  );
}

/** The fields as the API takes them: an empty limit is none. Dollars stay text, which the API reads exactly. */
function bodyOf({ scope_id, limit_usd, limit_requests, limit_tokens, ...fields }: BudgetFields): NewBudget {
  return {
    ...fields,
    scope_id: scope_id || null,
    limit_usd: limit_usd || null,
    limit_requests: limit_requests === "" ? null : Number(limit_requests),
    limit_tokens: limit_tokens === "" ? null : Number(limit_tokens),
  };
}
