import type { RegisterOptions, UseFormRegisterReturn } from "react-hook-form";
import { TextField } from "../parts/fields";
import { Fields } from "../parts/Trial";
import { DECIMAL } from "../parts/forms";
import { budgetTexts } from "../texts/budgets";

/** The text in the limit fields of a budget. An empty field means no limit. */
export interface LimitValues {
  limit_usd: string;
  limit_requests: string;
  limit_tokens: string;
}

type LimitName = keyof LimitValues;

/** The fields for the three limits of a budget, side by side. */
export function LimitFields({ register, errors, hints = {}, autoFocus = false }: {
  register: (name: LimitName, options: Pick<RegisterOptions, "pattern">) => UseFormRegisterReturn;
  errors: { [Name in LimitName]?: { message?: string | undefined } | undefined };
  hints?: { [Name in LimitName]?: string | undefined };
  autoFocus?: boolean;
}) {
  const budgets = budgetTexts;
  const whole = { pattern: { value: /^\d*$/, message: budgets.wholeNumber } };
  return (
    <Fields>
      <TextField
        label={budgets.limitDollars} hint={hints.limit_usd} inputMode="decimal" autoComplete="off" autoFocus={autoFocus} fault={errors.limit_usd?.message}
        {...register("limit_usd", { pattern: { value: DECIMAL, message: budgets.number } })}
      />
      <TextField
        label={budgets.limitRequests} hint={hints.limit_requests} inputMode="numeric" autoComplete="off" fault={errors.limit_requests?.message}
        {...register("limit_requests", whole)}
      />
      <TextField
        label={budgets.limitTokens} hint={hints.limit_tokens ?? budgets.tokensHint} inputMode="numeric" autoComplete="off"
        fault={errors.limit_tokens?.message} {...register("limit_tokens", whole)}
      />
    </Fields>
  );
}

/** Converts the texts to the limits of a request body. The amount in dollars stays text, so that the API can read it
 * exactly. */
export function limitsOf({ limit_usd, limit_requests, limit_tokens }: LimitValues) {
  return {
    limit_usd: limit_usd || null,
    limit_requests: limit_requests === "" ? null : Number(limit_requests),
    limit_tokens: limit_tokens === "" ? null : Number(limit_tokens),
  };
}

/** Converts limits of the API to the texts of the fields. */
export function limitTexts(limits: { [Name in LimitName]?: number | null } | undefined): LimitValues {
  return {
    limit_usd: limits?.limit_usd?.toString() ?? "",
    limit_requests: limits?.limit_requests?.toString() ?? "",
    limit_tokens: limits?.limit_tokens?.toString() ?? "",
  };
}
