import { useForm } from "react-hook-form";
import { CheckboxField, TextAreaField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { linesOf, textOf } from "../parts/lines";
import { PolicyPanel } from "../parts/PolicyPanel";
import { texts } from "../texts";
import { useAllowlist, useUpdateAllowlist } from "./api";

interface Fields {
  enabled: boolean;
  cidrs: string;
  bypass_for_mfa: boolean;
}

/** The addresses from which the organization's credentials are accepted. */
export function Allowlist() {
  const { allowlist } = texts;
  const list = useAllowlist();
  const update = useUpdateAllowlist();
  const form = useForm<Fields>({
    ...(list.data !== undefined && { values: { ...list.data, cidrs: textOf(list.data.cidrs) } }),
    resetOptions: KEEP_TYPED,
  });
  const { errors } = form.formState;
  return (
    <PolicyPanel
      title={allowlist.title} form={form} query={list} saved={allowlist.saved}
      onSave={async ({ cidrs, ...rest }) => {
        // The list as it is stored, without host bits.
        const stored = await update.mutateAsync({ ...rest, ...(cidrs !== undefined && { cidrs: linesOf(cidrs) }) });
        return { ...stored, cidrs: textOf(stored.cidrs) };
      }}
    >
      <CheckboxField label={allowlist.enabled} hint={allowlist.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
      <TextAreaField
        label={allowlist.cidrs} hint={allowlist.cidrsHint} rows={5} spellCheck={false} autoCapitalize="none" fault={errors.cidrs?.message}
        {...form.register("cidrs")}
      />
      <CheckboxField label={allowlist.bypass} hint={allowlist.bypassHint} fault={errors.bypass_for_mfa?.message} {...form.register("bypass_for_mfa")} />
    </PolicyPanel>
  );
}
