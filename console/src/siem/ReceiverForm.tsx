import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { newSecret } from "../api/secrets";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextAreaField, TextField } from "../parts/fields";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { siemTexts } from "../texts/siem";
import { type ReceiverType, type Siem, type SiemUpdate, TYPES, useSaveReceiver } from "./api";

interface ReceiverFields {
  type: ReceiverType;
  url: string;
  host: string;
  port: string;
  ca_certificate: string;
  index: string;
  token: string;
  secret: string;
}

/** The form for the receiver. A stored token or secret can be replaced, but not shown. `onSaved` receives the secret if
 * one was generated, otherwise null. */
export function ReceiverForm({ siem: stored, onSaved, onCancel }: {
  siem: Siem;
  onSaved: (generated: string | null) => void;
  onCancel: () => void;
}) {
  const siem = siemTexts;
  const { operates } = useRights();
  const form = useForm<ReceiverFields>({
    defaultValues: {
      type: stored.type ?? "hec",
      url: stored.url ?? "",
      host: stored.host ?? "",
      port: stored.port?.toString() ?? "",
      ca_certificate: stored.ca_certificate ?? "",
      index: stored.index ?? "",
      token: "",
      secret: "",
    },
  });
  const save = useSaveReceiver(stored);
  const { errors } = form.formState;
  const type = form.watch("type");
  const keeps = type === stored.type;
  const isSyslog = type === "syslog_tcp" || type === "syslog_tls";
  const required = { required: siem.required };
  return (
    <DialogForm
      form={form} action={texts.rules.save} onCancel={onCancel}
      onSubmit={async (fields) => {
        const generated = type === "webhook" && !keeps && fields.secret === "" ? newSecret() : null;
        await save.mutateAsync(bodyOf({ ...fields, secret: generated ?? fields.secret }));
        onSaved(generated);
      }}
    >
      <SelectField label={siem.type} hint={siem.typeHints[type]} autoFocus fault={errors.type?.message} {...form.register("type")}>
        {TYPES.filter((other) => other !== "file" || operates || stored.type === "file")
          .map((other) => <option key={other} value={other}>{siem.types[other]}</option>)}
      </SelectField>
      {(type === "hec" || type === "webhook") && (
        <TextField
          label={siem.url} hint={siem.urlHint} type="url" autoComplete="off" spellCheck={false} fault={errors.url?.message}
          {...form.register("url", required)}
        />
      )}
      {isSyslog && (
        <Fields>
          <TextField label={siem.host} autoComplete="off" spellCheck={false} fault={errors.host?.message} {...form.register("host", required)} />
          <TextField
            label={siem.port} inputMode="numeric" autoComplete="off" fault={errors.port?.message}
            {...form.register("port", { ...required, pattern: { value: /^\d+$/, message: siem.portRequired } })}
          />
        </Fields>
      )}
      {type === "syslog_tls" && (
        <TextAreaField
          label={siem.authorities} hint={siem.authoritiesHint} rows={5} spellCheck={false} fault={errors.ca_certificate?.message}
          {...form.register("ca_certificate")}
        />
      )}
      {type === "hec" && (
        <>
          <TextField label={siem.index} hint={siem.indexHint} autoComplete="off" spellCheck={false} fault={errors.index?.message} {...form.register("index")} />
          <TextField
            label={siem.token} hint={keeps ? siem.tokenKept : siem.tokenHint} type="password" autoComplete="new-password"
            fault={errors.token?.message} {...form.register("token", keeps ? {} : required)}
          />
        </>
      )}
      {type === "webhook" && (
        <TextField
          label={siem.secret} hint={keeps ? siem.secretKept : siem.secretHint} type="password" autoComplete="new-password"
          fault={errors.secret?.message} {...form.register("secret")}
        />
      )}
    </DialogForm>
  );
}

/** Converts the fields of the selected type to a request body. If the token or secret is empty, it is not sent, and the
 * API keeps the stored one. */
function bodyOf({ type, url, host, port, ca_certificate: authorities, index, token, secret }: ReceiverFields): SiemUpdate {
  if (type === "hec") return { type, url: url.trim(), index: index.trim() || null, ...(token !== "" && { token }) };
  if (type === "webhook") return { type, url: url.trim(), ...(secret !== "" && { secret }) };
  if (type === "file") return { type };
  const receiver = { type, host: host.trim(), port: Number(port) };
  return type === "syslog_tls" ? { ...receiver, ca_certificate: authorities.trim() || null } : receiver;
}
