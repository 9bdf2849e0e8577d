import { Plus, X } from "lucide-react";
import { useFieldArray, useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextField } from "../parts/fields";
import { DECIMAL } from "../parts/forms";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { endpointTexts, modelTexts } from "../texts/models";
import { organizationTexts } from "../texts/organization";
import { type NewEndpoint, useCreateEndpoint } from "./api";

/** The user enters prices per million tokens. The API expects prices per thousand tokens. */
const THOUSANDS_OF_A_PRICE = 1000;
/** The timeout of the endpoint: the API's default. */
const TIMEOUT_MS = 30_000;
/** The API's limit is 100 USD per thousand tokens. */
const MAX_USD_PER_MILLION_TOKENS = 100_000;
/** The fields have the names of the API's fields, so that error messages of the API are shown at them. The prices are
 * per million tokens. */
const EMPTY_MODEL = { model_id: "", display_name: "", context_window: "", input_cost_per_1k: "", output_cost_per_1k: "" };

interface FormFields {
  id: string;
  name: string;
  base_url: string;
  format: NewEndpoint["format"];
  api_key: string;
  responses_api: boolean;
  models: (typeof EMPTY_MODEL)[];
}

/** Adds an endpoint and its models. The models can be called at once. */
export function EndpointForm({ onDone }: { onDone: () => void }) {
  const endpoint = endpointTexts;
  const models = modelTexts;
  const create = useCreateEndpoint();
  const form = useForm<FormFields>({
    defaultValues: { id: "", name: "", base_url: "", format: "openai", api_key: "", responses_api: false, models: [EMPTY_MODEL] },
  });
  const rows = useFieldArray({ control: form.control, name: "models" });
  const { errors } = form.formState;
  const required = { required: organizationTexts.required };
  const number = { ...required, pattern: { value: DECIMAL, message: models.numberRequired } };
  const price = { ...number, max: { value: MAX_USD_PER_MILLION_TOKENS, message: models.priceTooHigh } };
  const text = { autoComplete: "off", spellCheck: false } as const;
  return (
    <DialogForm
      form={form} action={endpoint.create} onCancel={onDone}
      onSubmit={async (fields) => {
        const created = await create.mutateAsync(bodyOf(fields));
        toast(endpoint.created(created.name));
        onDone();
      }}
    >
      <Fields>
        <TextField label={endpoint.id} hint={endpoint.idHint} {...text} fault={errors.id?.message} {...form.register("id", required)} />
        <TextField label={endpoint.name} autoComplete="off" fault={errors.name?.message} {...form.register("name", required)} />
      </Fields>
      <Fields>
        <TextField label={endpoint.url} hint={endpoint.urlHint} type="url" {...text} fault={errors.base_url?.message} {...form.register("base_url", required)} />
        <SelectField label={endpoint.format} fault={errors.format?.message} {...form.register("format")}>
          <option value="openai">{endpoint.formats.openai}</option>
          <option value="anthropic">{endpoint.formats.anthropic}</option>
        </SelectField>
      </Fields>
      <TextField label={endpoint.key} hint={endpoint.keyHint} type="password" {...text} fault={errors.api_key?.message} {...form.register("api_key")} />
      {form.watch("format") === "openai" && (
        <CheckboxField label={endpoint.responses} hint={endpoint.responsesHint} fault={errors.responses_api?.message} {...form.register("responses_api")} />
      )}
      {rows.fields.map((row, at) => {
        const faults = errors.models?.[at];
        return (
          <FieldSet key={row.id} label={endpoint.model(at + 1)}>
            <Fields>
              <TextField label={models.id} {...text} fault={faults?.model_id?.message} {...form.register(`models.${at}.model_id`, required)} />
              <TextField label={models.name} autoComplete="off" fault={faults?.display_name?.message} {...form.register(`models.${at}.display_name`)} />
            </Fields>
            <Fields>
              <TextField label={models.context} inputMode="numeric" fault={faults?.context_window?.message} {...form.register(`models.${at}.context_window`, number)} />
              <TextField label={models.inputPrice} inputMode="decimal" fault={faults?.input_cost_per_1k?.message} {...form.register(`models.${at}.input_cost_per_1k`, price)} />
              <TextField label={models.outputPrice} inputMode="decimal" fault={faults?.output_cost_per_1k?.message} {...form.register(`models.${at}.output_cost_per_1k`, price)} />
            </Fields>
            {rows.fields.length > 1 && (
              <div><Button size="small" look="quiet" onClick={() => rows.remove(at)}><X aria-hidden />{endpoint.removeModel(at + 1)}</Button></div>
            )}
          </FieldSet>
        );
      })}
      <div><Button size="small" onClick={() => rows.append(EMPTY_MODEL)}><Plus aria-hidden />{endpoint.addModel}</Button></div>
    </DialogForm>
  );
}

function bodyOf({ api_key: key, models, ...fields }: FormFields): NewEndpoint {
  return {
    ...fields,
    id: fields.id.trim(),
    base_url: fields.base_url.trim(),
    responses_api: fields.format === "openai" && fields.responses_api,
    api_key: key.trim() === "" ? null : key.trim(),
    timeout_ms: TIMEOUT_MS,
    models: models.map((model) => ({
      model_id: model.model_id.trim(),
      display_name: model.display_name.trim() || model.model_id.trim(),
      context_window: Number(model.context_window),
      input_cost_per_1k: costOf(model.input_cost_per_1k),
      output_cost_per_1k: costOf(model.output_cost_per_1k),
    })),
  };
}

function costOf(price: string): number {
  return Number((Number(price) / THOUSANDS_OF_A_PRICE).toPrecision(12));
}
