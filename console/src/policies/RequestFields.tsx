import { SelectField, TextField } from "../parts/fields";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { policyTexts } from "../texts/policies";
import type { PolicyTrial } from "./api";

/** The entered values of a test request. All values are the texts of the fields. */
export interface DescribedRequest {
  model: string;
  entities: string;
  tokens: string;
  cost: string;
  role: string;
}

export const EMPTY_REQUEST: DescribedRequest = { model: "", entities: "", tokens: "", cost: "", role: "" };
const ROLES = ["user", "auditor", "admin"] as const;

export function RequestFields({ request, onChange }: { request: DescribedRequest; onChange: (request: DescribedRequest) => void }) {
  const policies = policyTexts;
  const field = (name: keyof DescribedRequest) => ({
    value: request[name],
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...request, [name]: target.value }),
  });
  return (
    <Fields>
      <TextField label={policies.model} hint={policies.modelHint} spellCheck={false} autoCapitalize="none" maxLength={320} {...field("model")} />
      <TextField label={policies.entities} hint={policies.entitiesHint} spellCheck={false} autoCapitalize="none" {...field("entities")} />
      <TextField label={policies.tokens} type="number" min={0} step={1} {...field("tokens")} />
      <TextField label={policies.cost} type="number" min={0} step="any" {...field("cost")} />
      <SelectField label={policies.role} {...field("role")}>
        <option value="">{texts.none}</option>
        {ROLES.map((role) => <option key={role} value={role}>{texts.roleOf(role)}</option>)}
      </SelectField>
    </Fields>
  );
}

/** Converts the entered values to the context of the test request. Empty values become the API's defaults. */
export function contextOf({ model, entities, tokens, cost, role }: DescribedRequest): NonNullable<PolicyTrial["context"]> {
  const types = entities.split(",").map((type) => type.trim()).filter((type) => type !== "");
  return {
    model: model.trim(),
    tokens: Number(tokens),
    cost_usd: cost === "" ? null : Number(cost),
    dlp: types.length === 0 ? null : { action: "REDACT", entities: types, counts: Object.fromEntries(types.map((type) => [type, 1])) },
    ...(role === "" ? {} : { user: { id: "", email: "", role: role as (typeof ROLES)[number], kind: "api_key" } }),
  };
}
