import { type UseFormReturn, useForm } from "react-hook-form";
import { useId } from "react";
import { type Period, PERIODS } from "../budgets/api";
import { LimitFields, limitsOf, limitTexts, type LimitValues } from "../budgets/LimitFields";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { dollars, wholeNumber } from "../parts/format";
import { SelectField, TextAreaField, TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { useTyped } from "../parts/useTyped";
import { accessRequestTexts } from "../texts/access-requests";
import { budgetTexts } from "../texts/budgets";
import { useUsageSummary } from "../usage/api";
import { type AccessKind, useCreateRequest, useRequestableModels } from "./api";

interface RequestFields extends LimitValues {
  model: string;
  period: Period;
  reason: string;
}

/** The dialog in which a user requests access to a model or a higher limit. `model` is the initial value of the model
 * field. */
export function RequestDialog({ kind, model = "", onClose }: {
  kind: AccessKind | undefined;
  model?: string | undefined;
  onClose: () => void;
}) {
  const accessRequests = accessRequestTexts;
  return (
    <Dialog
      open={kind !== undefined} onClose={onClose} wide
      title={kind === "limit" ? accessRequests.askLimit : accessRequests.askModel}
      text={kind === "limit" ? accessRequests.askLimitText : accessRequests.askModelText}
    >
      {kind !== undefined && <RequestForm key={`${kind} ${model}`} kind={kind} model={model} onDone={onClose} />}
    </Dialog>
  );
}

function RequestForm({ kind, model, onDone }: { kind: AccessKind; model: string; onDone: () => void }) {
  const accessRequests = accessRequestTexts;
  const create = useCreateRequest();
  const form = useForm<RequestFields>({ defaultValues: { model, period: "month", ...limitTexts(undefined), reason: "" } });
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={accessRequests.send} onCancel={onDone}
      onSubmit={async ({ model: name, period, reason, ...limits }) => {
        const subject = kind === "model" ? { model: name.trim() } : { period, ...limitsOf(limits) };
        await create.mutateAsync({ kind, ...subject, reason: reason.trim() });
        toast(accessRequests.sent);
        onDone();
      }}
    >
      {kind === "model" ? <ModelField form={form} preset={model} /> : <WishedLimits form={form} />}
      <TextAreaField
        label={accessRequests.reason} hint={accessRequests.reasonHint} maxLength={1000} rows={3} autoFocus={model !== ""}
        fault={errors.reason?.message}
        {...form.register("reason", { validate: (typed) => typed.trim() !== "" || accessRequests.reasonMissing })}
      />
    </DialogForm>
  );
}

/** The field for the model. It suggests the models that the user can request. */
function ModelField({ form, preset }: { form: UseFormReturn<RequestFields>; preset: string }) {
  const accessRequests = accessRequestTexts;
  const id = useId();
  const typed = form.watch("model");
  const search = useTyped(typed, preset) ?? "";
  const models = useRequestableModels(search);
  return (
    <>
      <TextField
        label={accessRequests.model} placeholder={accessRequests.modelPlaceholder} list={id} autoFocus={preset === ""}
        hint={search === "" && models.data?.length === 0 ? accessRequests.noModels : accessRequests.modelHint}
        autoComplete="off" spellCheck={false} autoCapitalize="none" fault={form.formState.errors.model?.message}
        {...form.register("model", { validate: (name) => name.trim() !== "" || accessRequests.modelMissing })}
      />
      <datalist id={id}>
        {models.data?.map(({ model, display_name: name }) => <option key={model} value={model}>{name}</option>)}
      </datalist>
    </>
  );
}

/** The fields for the period and the limits. Their hints show the current limits of the user's own budget. */
function WishedLimits({ form }: { form: UseFormReturn<RequestFields> }) {
  const accessRequests = accessRequestTexts;
  const budgets = budgetTexts;
  const summary = useUsageSummary("month");
  const period = form.watch("period");
  const own = summary.data?.budgets.find((budget) => budget.scope_type === "user" && budget.period === period);
  const hint = (limit: string | null | undefined) => (limit == null ? undefined : accessRequests.now(limit));
  return (
    <>
      <SelectField
        label={budgets.period} hint={own === undefined ? accessRequests.noOwnBudget : accessRequests.otherBudgets}
        autoFocus fault={form.formState.errors.period?.message} {...form.register("period")}
      >
        {PERIODS.map((name) => <option key={name} value={name}>{budgets.periods[name]}</option>)}
      </SelectField>
      <LimitFields
        register={form.register} errors={form.formState.errors}
        hints={{
          limit_usd: hint(own?.limit_usd == null ? null : dollars(own.limit_usd)),
          limit_requests: hint(own?.limit_requests == null ? null : wholeNumber(own.limit_requests)),
          limit_tokens: hint(own?.limit_tokens == null ? null : wholeNumber(own.limit_tokens)),
        }}
      />
    </>
  );
}
