import { Controller, useForm } from "react-hook-form";
import { useFormVersion } from "../api/versions";
import { ChoicesField } from "../parts/ChoicesField";
import { SourceHint, TextAreaField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { linesOf } from "../parts/lines";
import { PolicyPanel } from "../parts/PolicyPanel";
import { texts } from "../texts";
import { requestFieldTexts } from "../texts/organization";
import { type RequestFieldList, useRequestFields, useUpdateRequestFields } from "./api";
import styles from "./OrganizationPage.module.css";

interface Fields {
  known: string[];
  others: string;
}

/** The fields of model calls that are refused unless the organization allows them. */
export function RequestFields() {
  const requestFields = requestFieldTexts;
  const list = useRequestFields();
  const update = useUpdateRequestFields();
  const values = list.data === undefined ? undefined : fieldsOf(list.data);
  const form = useForm<Fields>({ ...(values !== undefined && { values }), resetOptions: KEEP_TYPED });
  const { errors, dirtyFields } = form.formState;
  const version = useFormVersion(list.data?.etag ?? "*", dirtyFields);

  async function save() {
    const { known, others } = form.getValues();
    return fieldsOf(await update.mutateAsync({ version: version.version, allowed: [...known, ...linesOf(others)] }));
  }

  return (
    <PolicyPanel
      title={requestFields.title} form={form} query={list} onSave={save} saved={requestFields.saved} version={version}
      footer={list.data !== undefined && (
        <div className={styles["muted"]}>
          {requestFields.unknown[list.data.unknown_fields]}
          <SourceHint source={list.data.sources["unknown_fields"]} />
        </div>
      )}
    >
      <SourceHint source={list.data?.sources["allowed"]} />
      {version.isRefused && list.data !== undefined && <p role="status">{texts.rules.storedNow(list.data.allowed)}</p>}
      <Controller
        name="known" control={form.control}
        render={({ field }) => (
          <ChoicesField
            label={requestFields.known} hint={requestFields.knownHint} fault={errors.known?.message} options={list.data && optionsOf(list.data)}
            chosen={field.value ?? []} onChange={field.onChange}
          />
        )}
      />
      <TextAreaField
        label={requestFields.others} hint={requestFields.othersHint} rows={3} spellCheck={false} autoCapitalize="none" fault={errors.others?.message}
        {...form.register("others")}
      />
    </PolicyPanel>
  );
}

/** The allowed fields, then the refused ones. */
function optionsOf({ allowed, refused }: RequestFieldList) {
  return [
    ...allowed.map((name) => ({ id: name, name })),
    ...refused.map(({ field, reason }) => ({ id: field, name: `${field}: ${reason}` })),
  ];
}

/** Returns the values of the form. The response does not tell which allowed fields are refused by default. So all
 * allowed fields are in `known`, and `others` is empty. */
function fieldsOf({ allowed }: RequestFieldList): Fields {
  return { known: allowed, others: "" };
}
