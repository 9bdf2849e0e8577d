import { Plus, X } from "lucide-react";
import { useId } from "react";
import { useFieldArray, type UseFormReturn } from "react-hook-form";
import { Button } from "../parts/Button";
import { FieldSet, SelectField, TextField } from "../parts/fields";
import { DECIMAL } from "../parts/forms";
import { useCredentials } from "../providers/credentials";
import { useModelNames } from "../routing/api";
import { aliasTexts } from "../texts/aliases";
import styles from "./DeploymentsField.module.css";
import { type AliasFields, NEW_DEPLOYMENT } from "./fields";

const MODEL_PATTERN = /^[^/\s]+\/\S+$/;
const WHOLE = /^\d+$/;
const WHOLE_OR_NONE = /^\d*$/;

/** The deployments of an alias, with their shares and limits. */
export function DeploymentsField({ form }: { form: UseFormReturn<AliasFields> }) {
  const { fields, append, remove } = useFieldArray({ control: form.control, name: "deployments" });
  const { deployments: faults } = form.formState.errors;
  const models = useModelNames();
  const listId = useId();
  return (
    <FieldSet label={aliasTexts.deployments} hint={aliasTexts.deploymentsHint} fault={faults?.message ?? faults?.root?.message}>
      <ol className={styles["list"]} aria-label={aliasTexts.deployments}>
        {fields.map(({ id }, at) => (
          <li key={id} className={styles["entry"]} aria-label={aliasTexts.deployment(at + 1)}>
            <Model form={form} at={at} listId={listId} />
            <Numbers form={form} at={at} />
            {fields.length > 1 && (
              <div><Button size="small" look="quiet" aria-label={aliasTexts.remove(at + 1)} onClick={() => remove(at)}><X aria-hidden />{aliasTexts.remove(at + 1)}</Button></div>
            )}
          </li>
        ))}
      </ol>
      <div><Button size="small" onClick={() => append(NEW_DEPLOYMENT)}><Plus aria-hidden />{aliasTexts.add}</Button></div>
      <datalist id={listId}>{models.data?.map((name) => <option key={name} value={name} />)}</datalist>
    </FieldSet>
  );
}

function Model({ form, at, listId }: { form: UseFormReturn<AliasFields>; at: number; listId: string }) {
  const fault = form.formState.errors.deployments?.[at];
  const role = form.watch(`deployments.${at}.role`);
  return (
    <>
      <TextField
        label={aliasTexts.model} list={listId} autoComplete="off" spellCheck={false} autoCapitalize="none" maxLength={321}
        fault={fault?.model?.message}
        {...form.register(`deployments.${at}.model`, { required: aliasTexts.modelPattern, pattern: { value: MODEL_PATTERN, message: aliasTexts.modelPattern } })}
      />
      <Credential form={form} at={at} fault={fault?.credential?.message} />
      <SelectField label={aliasTexts.role} hint={role === "shadow" ? aliasTexts.shadowHint : undefined} fault={fault?.role?.message} {...form.register(`deployments.${at}.role`)}>
        <option value="live">{aliasTexts.roles.live}</option>
        <option value="shadow">{aliasTexts.roles.shadow}</option>
      </SelectField>
    </>
  );
}

/** The credentials of the model's provider. A stored label that the provider does not have stays an option, so that it can
 * be seen and replaced. */
function Credential({ form, at, fault }: { form: UseFormReturn<AliasFields>; at: number; fault: string | undefined }) {
  const name = form.watch(`deployments.${at}.model`, "").trim();
  const chosen = form.watch(`deployments.${at}.credential`, "");
  const { data: credentials } = useCredentials(MODEL_PATTERN.test(name) ? name.slice(0, name.indexOf("/")) : undefined);
  const options = new Map(credentials?.map(({ label, state }) => [label, aliasTexts.credentialOf(label, state)]));
  // It is an option with the same key before and after the list is loaded, so that it stays selected.
  if (chosen !== "" && !options.has(chosen)) options.set(chosen, chosen);
  return (
    <SelectField label={aliasTexts.credential} hint={aliasTexts.credentialHint} fault={fault} {...form.register(`deployments.${at}.credential`)}>
      <option value="">{aliasTexts.allCredentials}</option>
      {Array.from(options, ([label, text]) => <option key={label} value={label}>{text}</option>)}
    </SelectField>
  );
}

function Numbers({ form, at }: { form: UseFormReturn<AliasFields>; at: number }) {
  const faults = form.formState.errors.deployments?.[at];
  const isShadow = form.watch(`deployments.${at}.role`) === "shadow";
  const whole = { required: aliasTexts.wholeNumber, pattern: { value: WHOLE, message: aliasTexts.wholeNumber } };
  const limit = { pattern: { value: WHOLE_OR_NONE, message: aliasTexts.wholeNumber } };
  const shared = { inputMode: "numeric", autoComplete: "off" } as const;
  if (isShadow) {
    return (
      <div className={styles["numbers"]}>
        <TextField
          label={aliasTexts.share} inputMode="decimal" autoComplete="off" fault={faults?.share?.message}
          {...form.register(`deployments.${at}.share`, { required: aliasTexts.number, pattern: { value: DECIMAL, message: aliasTexts.number } })}
        />
      </div>
    );
  }
  return (
    <div className={styles["numbers"]}>
      <TextField label={aliasTexts.weight} {...shared} fault={faults?.weight?.message} {...form.register(`deployments.${at}.weight`, whole)} />
      <TextField label={aliasTexts.tier} {...shared} fault={faults?.tier?.message} {...form.register(`deployments.${at}.tier`, whole)} />
      <TextField label={aliasTexts.concurrent} hint={aliasTexts.noLimit} {...shared} fault={faults?.max_concurrent_requests?.message} {...form.register(`deployments.${at}.max_concurrent_requests`, limit)} />
      <TextField label={aliasTexts.perMinute} hint={aliasTexts.noLimit} {...shared} fault={faults?.requests_per_minute?.message} {...form.register(`deployments.${at}.requests_per_minute`, limit)} />
      <TextField label={aliasTexts.tokens} hint={aliasTexts.noLimit} {...shared} fault={faults?.tokens_per_minute?.message} {...form.register(`deployments.${at}.tokens_per_minute`, limit)} />
    </div>
  );
}
