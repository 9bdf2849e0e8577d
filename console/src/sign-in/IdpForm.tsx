import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, TextAreaField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { signInTexts } from "../texts/sign-in";
import type { Idp, NewIdp } from "./api";
import { MetadataReader } from "./MetadataReader";
import styles from "./SignInPage.module.css";

export interface IdpFields {
  name: string;
  entity_id: string;
  sso_url: string;
  slo_url: string;
  x509_cert: string;
  email: string;
  username: string;
  groups: string;
  allow_idp_initiated: boolean;
}

/** Creates and edits an identity provider. The user can fill in the fields from the provider's metadata. */
export function IdpForm({ idp, onSubmit, onCancel }: {
  idp?: Idp;
  onSubmit: (fields: IdpFields) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { rules } = texts;
  const signIn = signInTexts;
  const form = useForm<IdpFields>({
    defaultValues: {
      name: idp?.name ?? "",
      entity_id: idp?.entity_id ?? "",
      sso_url: idp?.sso_url ?? "",
      slo_url: idp?.slo_url ?? "",
      x509_cert: idp?.x509_cert ?? "",
      email: idp?.attribute_mapping?.email ?? "",
      username: idp?.attribute_mapping?.username ?? "",
      groups: idp?.attribute_mapping?.groups ?? "",
      allow_idp_initiated: idp?.allow_idp_initiated ?? false,
    },
  });
  const { errors } = form.formState;
  const required = { required: signIn.required };
  const plain = { autoComplete: "off", spellCheck: false, autoCapitalize: "none" } as const;
  return (
    <DialogForm form={form} action={idp === undefined ? rules.create : rules.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={rules.name} hint={signIn.nameHint} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <MetadataReader
        onRead={({ entity_id, sso_url, slo_url, x509_cert }) => {
          const read = { entity_id, sso_url, slo_url: slo_url ?? "", x509_cert };
          for (const name of ["entity_id", "sso_url", "slo_url", "x509_cert"] as const) {
            form.setValue(name, read[name], { shouldDirty: true, shouldValidate: true });
          }
        }}
      />
      <TextField label={signIn.entityId} {...plain} fault={errors.entity_id?.message} {...form.register("entity_id", required)} />
      <TextField label={signIn.ssoUrl} {...plain} type="url" fault={errors.sso_url?.message} {...form.register("sso_url", required)} />
      <TextField
        label={signIn.theirSloUrl} hint={signIn.theirSloUrlHint} {...plain} type="url" fault={errors.slo_url?.message}
        {...form.register("slo_url")}
      />
      <TextAreaField
        label={signIn.certificate} hint={signIn.certificateHint} {...plain} className={styles["mono"]} rows={5}
        fault={errors.x509_cert?.message} {...form.register("x509_cert", required)}
      />
      <fieldset className={styles["group"]}>
        <legend className={styles["legend"]}>{signIn.mapping}</legend>
        <p className={styles["hint"]}>{signIn.mappingHint}</p>
        <TextField label={signIn.emailAttribute} {...plain} fault={errors.email?.message} {...form.register("email")} />
        <TextField label={signIn.usernameAttribute} {...plain} fault={errors.username?.message} {...form.register("username")} />
        <TextField
          label={signIn.groupsAttribute} hint={signIn.groupsAttributeHint} {...plain} fault={errors.groups?.message}
          {...form.register("groups")}
        />
      </fieldset>
      <CheckboxField
        label={signIn.idpInitiated} hint={signIn.idpInitiatedHint} fault={errors.allow_idp_initiated?.message}
        {...form.register("allow_idp_initiated")}
      />
    </DialogForm>
  );
}

/** Converts the fields to a request body. Empty texts become null. */
export function bodyOf({ email, username, groups, slo_url, ...fields }: IdpFields): Omit<NewIdp, "is_active"> {
  const mapping = { email: email.trim() || null, username: username.trim() || null, groups: groups.trim() || null };
  const isMapped = Object.values(mapping).some((name) => name !== null);
  return { ...fields, slo_url: slo_url.trim() || null, attribute_mapping: isMapped ? mapping : null };
}
