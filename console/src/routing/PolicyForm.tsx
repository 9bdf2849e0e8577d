import { useState } from "react";
import { useForm, type UseFormReturn } from "react-hook-form";
import { useGroupNames, useGroupOptions } from "../groups/api";
import { ChoicesField } from "../parts/ChoicesField";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextAreaField, TextField } from "../parts/fields";
import fieldStyles from "../parts/fields.module.css";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { useTyped } from "../parts/useTyped";
import { useProviderOptions } from "../providers/api";
import { DECIMAL } from "../parts/forms";
import { texts } from "../texts";
import { routingTexts } from "../texts/routing";
import { CAP_ACTIONS, CAPABILITIES, type RoutingPolicy, STRATEGIES, useSavePolicy } from "./api";
import { ChainField } from "./ChainField";
import { bodyOf, fieldsOf, type PolicyFields } from "./fields";

/** Creates and edits a routing policy. */
export function PolicyForm({ policy, onDone }: { policy?: RoutingPolicy; onDone: () => void }) {
  const { rules } = texts;
  const routing = routingTexts;
  const form = useForm<PolicyFields>({ defaultValues: fieldsOf(policy) });
  const save = useSavePolicy(policy);
  const [groupPart, setGroupPart] = useState("");
  const groups = useGroupOptions(useTyped(groupPart));
  const { errors } = form.formState;
  const [strategy, groupIds, capAction] = form.watch(["strategy", "group_ids", "action_on_exceed"]);
  const whole = { pattern: { value: /^\d*$/, message: routing.wholeNumber } };
  return (
    <DialogForm
      form={form} action={policy === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { name } = await save.mutateAsync(bodyOf(fields));
        toast(policy === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField label={rules.description} autoComplete="off" maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <ChoicesField
        label={routing.groups} hint={groupIds.length === 0 ? routing.groupsHint : routing.groupsChosenHint} fault={errors.group_ids?.message}
        options={groups?.rows} total={groups?.total} names={useGroupNames(groupIds)} onSearch={setGroupPart} chosen={groupIds}
        onChange={(ids) => form.setValue("group_ids", ids, { shouldDirty: true })}
      />
      <SelectField label={routing.strategy} hint={routing.strategyHints[strategy]} fault={errors.strategy?.message} {...form.register("strategy")}>
        {STRATEGIES.map((option) => <option key={option} value={option}>{routing.strategies[option]}</option>)}
      </SelectField>
      {strategy !== "manual_fallback" && <ModelFields form={form} />}
      <ChainField form={form} isWeighted={strategy === "balanced"} />
      <Fields>
        <TextField
          label={routing.cap} hint={routing.capHint} inputMode="decimal" autoComplete="off" fault={errors.max_cost_per_request_usd?.message}
          {...form.register("max_cost_per_request_usd", { pattern: { value: DECIMAL, message: routing.number } })}
        />
        <SelectField label={routing.overCap} hint={routing.capActionHints[capAction]} fault={errors.action_on_exceed?.message} {...form.register("action_on_exceed")}>
          {CAP_ACTIONS.map((option) => <option key={option} value={option}>{routing.capActions[option]}</option>)}
        </SelectField>
      </Fields>
      <Fields>
        <TextField
          label={routing.latencyBudget} hint={routing.latencyBudgetHint} inputMode="numeric" autoComplete="off" fault={errors.latency_budget_ms?.message}
          {...form.register("latency_budget_ms", whole)}
        />
        <TextField
          label={routing.cache} hint={routing.cacheHint} inputMode="numeric" autoComplete="off" fault={errors.cache_ttl_seconds?.message}
          {...form.register("cache_ttl_seconds", whole)}
        />
      </Fields>
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
    </DialogForm>
  );
}

/** The fields that limit the models from which the strategy selects. */
function ModelFields({ form }: { form: UseFormReturn<PolicyFields> }) {
  const routing = routingTexts;
  const { errors } = form.formState;
  const chosen = form.watch("included_providers");
  const [part, setPart] = useState("");
  const providers = useProviderOptions(useTyped(part));
  return (
    <>
      <FieldSet label={routing.capabilities} hint={routing.capabilitiesHint} fault={errors.required_capabilities?.message}>
        <div className={fieldStyles["checks"]}>
          {CAPABILITIES.map((name) => (
            <CheckboxField key={name} value={name} label={routing.capabilityNames[name]} {...form.register("required_capabilities")} />
          ))}
        </div>
      </FieldSet>
      <ChoicesField
        label={routing.providers} hint={routing.providersHint} fault={errors.included_providers?.message}
        options={providers?.rows} total={providers?.total} onSearch={setPart} chosen={chosen}
        onChange={(ids) => form.setValue("included_providers", ids, { shouldDirty: true })}
      />
      <TextAreaField
        label={routing.excluded} hint={routing.excludedHint} rows={2} spellCheck={false} autoCapitalize="none"
        fault={errors.excluded_models?.message} {...form.register("excluded_models")}
      />
      <Fields>
        <TextField
          label={routing.maxPrice} hint={routing.maxPriceHint} inputMode="decimal" autoComplete="off" fault={errors.max_cost_per_1k_input_tokens_usd?.message}
          {...form.register("max_cost_per_1k_input_tokens_usd", { pattern: { value: DECIMAL, message: routing.number } })}
        />
        <TextField
          label={routing.minContext} hint={routing.minContextHint} inputMode="numeric" autoComplete="off" fault={errors.min_context_window?.message}
          {...form.register("min_context_window", { pattern: { value: /^\d*$/, message: routing.wholeNumber } })}
        />
      </Fields>
    </>
  );
}
