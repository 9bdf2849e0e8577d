import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextField } from "../parts/fields";
import { DECIMAL } from "../parts/forms";
import { SearchedSelectField } from "../parts/SearchedSelect";
import { useProvider, useProviderOptions } from "../providers/api";
import { modelTexts } from "../texts/models";
import type { Model, ModelUpdate } from "./api";

const TOKENS_OF_A_PRICE = 1_000_000;

interface Fields {
  provider: string;
  model_id: string;
  display_name: string;
  context_window: string;
  max_output_tokens: string;
  input_price: string;
  output_price: string;
  access: Model["access"];
  is_default: boolean;
}

export type ModelBody = ModelUpdate & { provider: string; model_id: string };

/** Creates and edits a model. The user enters prices per million tokens, the unit of providers' price lists. */
export function ModelForm({ model, onSubmit, onCancel }: {
  model?: Model | undefined;
  onSubmit: (body: ModelBody) => Promise<unknown>;
  onCancel: () => void;
}) {
  const models = modelTexts;
  const form = useForm<Fields>({
    defaultValues: {
      provider: model?.provider ?? "",
      model_id: model?.model_id ?? "",
      display_name: model?.display_name ?? "",
      context_window: model?.context_window?.toString() ?? "",
      max_output_tokens: model?.max_output_tokens?.toString() ?? "",
      input_price: priceOf(model?.cost_per_input_token),
      output_price: priceOf(model?.cost_per_output_token),
      access: model?.access ?? "open",
      is_default: model?.is_default ?? false,
    },
  });
  const { errors } = form.formState;
  form.register("provider", { required: models.providerRequired });
  const chosen = form.watch("provider");
  const provider = useProvider(chosen);
  return (
    <DialogForm form={form} action={model === undefined ? models.create : models.save} onSubmit={(fields) => onSubmit(bodyOf(fields))} onCancel={onCancel}>
      {model !== undefined ? (
        <TextField label={models.provider} readOnly value={provider.data?.name ?? chosen} />
      ) : (
        <SearchedSelectField
          label={models.provider} fault={errors.provider?.message} value={chosen}
          onChange={(id) => form.setValue("provider", id, { shouldDirty: true, shouldValidate: form.formState.isSubmitted })}
          useOptions={useProviderOptions} chosen={provider.data}
        >
          <option value="">{models.chooseProvider}</option>
        </SearchedSelectField>
      )}
      <TextField
        label={models.id} hint={models.idHint} spellCheck={false} autoComplete="off" readOnly={model !== undefined}
        fault={errors.model_id?.message} {...form.register("model_id", { required: models.idRequired })}
      />
      <TextField label={models.name} autoComplete="off" maxLength={255} fault={errors.display_name?.message} {...form.register("display_name")} />
      <TextField label={models.inputPrice} hint={priceHintOf(model)} inputMode="decimal" autoComplete="off" fault={errors.input_price?.message} {...form.register("input_price", { pattern: { value: DECIMAL, message: models.numberRequired } })} />
      <TextField label={models.outputPrice} inputMode="decimal" autoComplete="off" fault={errors.output_price?.message} {...form.register("output_price", { pattern: { value: DECIMAL, message: models.numberRequired } })} />
      <TextField label={models.context} inputMode="numeric" autoComplete="off" fault={errors.context_window?.message} {...form.register("context_window", { pattern: { value: /^\d*$/, message: models.numberRequired } })} />
      <TextField label={models.maxOutput} inputMode="numeric" autoComplete="off" fault={errors.max_output_tokens?.message} {...form.register("max_output_tokens", { pattern: { value: /^\d*$/, message: models.numberRequired } })} />
      <SelectField label={models.access} hint={models.accessHints[form.watch("access")]} fault={errors.access?.message} {...form.register("access")}>
        <option value="open">{models.accesses.open}</option>
        <option value="restricted">{models.accesses.restricted}</option>
      </SelectField>
      <CheckboxField label={models.default} hint={models.defaultHint} fault={errors.is_default?.message} {...form.register("is_default")} />
    </DialogForm>
  );
}

function bodyOf(fields: Fields): ModelBody {
  return {
    provider: fields.provider,
    model_id: fields.model_id.trim(),
    display_name: fields.display_name.trim() || null,
    context_window: fields.context_window === "" ? null : Number(fields.context_window),
    max_output_tokens: fields.max_output_tokens === "" ? null : Number(fields.max_output_tokens),
    cost_per_input_token: fields.input_price === "" ? null : costOf(fields.input_price),
    cost_per_output_token: fields.output_price === "" ? null : costOf(fields.output_price),
    access: fields.access,
    is_default: fields.is_default,
  };
}

/** Returns the hint for the price fields: the source of the model's prices, or for a new model the meaning of empty
 * prices. */
function priceHintOf(model: Model | undefined): string {
  return model === undefined ? modelTexts.priceEmptyHint : priceSourceOf(model) ?? modelTexts.priceHint;
}

/** Returns the source of a model's prices, or undefined if the model has no prices. */
export function priceSourceOf({ price_source: source, price_recorded_on: day }: Model): string | undefined {
  return source === null ? undefined : modelTexts.priceSources[source](day ?? "");
}

/** Returns the price per million tokens in dollars, without rounding errors of floating-point numbers. */
export function priceOf(cost: number | null | undefined): string {
  return cost === null || cost === undefined ? "" : String(Number((cost * TOKENS_OF_A_PRICE).toPrecision(12)));
}

function costOf(price: string): number {
  return Number((Number(price) / TOKENS_OF_A_PRICE).toPrecision(12));
}
