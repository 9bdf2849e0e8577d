import { useForm } from "react-hook-form";
import { useFormVersion } from "../api/versions";
import { CheckboxField, TextAreaField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { linesOf, textOf } from "../parts/lines";
import { PolicyPanel } from "../parts/PolicyPanel";
import { texts } from "../texts";
import { allowlistTexts } from "../texts/organization";
import { type Allowlist as StoredList, useAllowlist, useUpdateAllowlist } from "./api";

interface Fields {
  enabled: boolean;
  cidrs: string;
  bypass_for_mfa: boolean;
}

/** The addresses from which the organization's credentials are accepted. */
export function Allowlist() {
  const allowlist = allowlistTexts;
  const list = useAllowlist();
  const update = useUpdateAllowlist();
  const form = useForm<Fields>({
    ...(list.data !== undefined && { values: fieldsOf(list.data) }),
    resetOptions: KEEP_TYPED,
  });
  const { errors, dirtyFields } = form.formState;
  const version = useFormVersion(list.data?.etag ?? "*", dirtyFields);
  return (
    <PolicyPanel
      title={allowlist.title} form={form} query={list} saved={allowlist.saved} version={version}
      onSave={async ({ cidrs, ...rest }) => {
        // The API stores the networks without host bits, so the form then shows the stored list.
        const stored = await update.mutateAsync({ version: version.version, ...rest, ...(cidrs !== undefined && { cidrs: linesOf(cidrs) }) });
        return fieldsOf(stored);
      }}
    >
      {version.isRefused && list.data !== undefined && <p role="status">{texts.rules.storedNow(list.data.cidrs)}</p>}
      <CheckboxField label={allowlist.enabled} hint={allowlist.enabledHint} source={list.data?.sources["enabled"]} fault={errors.enabled?.message} {...form.register("enabled")} />
      <TextAreaField
        label={allowlist.cidrs} hint={allowlist.cidrsHint} source={list.data?.sources["cidrs"]} rows={5} spellCheck={false} autoCapitalize="none" fault={errors.cidrs?.message}
        {...form.register("cidrs")}
      />
      <CheckboxField label={allowlist.bypass} hint={allowlist.bypassHint} source={list.data?.sources["bypass_for_mfa"]} fault={errors.bypass_for_mfa?.message} {...form.register("bypass_for_mfa")} />
    </PolicyPanel>
  );
}

function fieldsOf({ enabled, cidrs, bypass_for_mfa }: StoredList): Fields {
  return { enabled, cidrs: textOf(cidrs), bypass_for_mfa };
}
