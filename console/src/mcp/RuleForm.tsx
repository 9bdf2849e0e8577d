import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField } from "../parts/fields";
import { SearchedSelectField } from "../parts/SearchedSelect";
import { mcpTexts } from "../texts/mcp";
import { type Access, type NewRule, useSubjectName, useSubjectOptions } from "./access";
import { useTools } from "./api";
import { SUBJECT_TYPES, type SubjectType } from "./choices";

const ACCESSES: readonly Access[] = ["ALLOW", "DENY"];

interface RuleFields {
  subject_type: SubjectType;
  subject_id: string;
  tool: string;
  access_type: Access;
}

/** Adds a rule for a subject to one tool or all tools of a server. */
export function RuleForm({ server, onSubmit, onCancel }: { server: string; onSubmit: (rule: NewRule) => Promise<unknown>; onCancel: () => void }) {
  const mcp = mcpTexts;
  const form = useForm<RuleFields>({ defaultValues: { subject_type: "group", subject_id: "", tool: "", access_type: "ALLOW" } });
  const { errors } = form.formState;
  const { subject_type: type, subject_id: id, tool } = form.watch();
  form.register("subject_id", { required: mcp.subjectRequired });
  form.register("tool");
  const name = useSubjectName(type, id);
  return (
    <DialogForm form={form} action={mcp.addRule} onSubmit={(fields) => onSubmit({ ...fields, tool: fields.tool || null })} onCancel={onCancel}>
      <SelectField
        label={mcp.subjectKind} autoFocus fault={errors.subject_type?.message}
        {...form.register("subject_type", { onChange: () => form.setValue("subject_id", "") })}
      >
        {SUBJECT_TYPES.map((kind) => <option key={kind} value={kind}>{mcp.subjects[kind]}</option>)}
      </SelectField>
      <SearchedSelectField
        key={type} label={mcp.subject} fault={errors.subject_id?.message} value={id}
        onChange={(chosen) => form.setValue("subject_id", chosen, { shouldDirty: true, shouldValidate: true })}
        useOptions={(search) => useSubjectOptions(type, search).data} chosen={id === "" ? undefined : { id, name }}
      >
        <option value="">{mcp.chooseSubject}</option>
      </SearchedSelectField>
      <SearchedSelectField
        label={mcp.tool} fault={errors.tool?.message} value={tool} onChange={(chosen) => form.setValue("tool", chosen, { shouldDirty: true })}
        useOptions={(search) => useToolOptions(server, search)} chosen={tool === "" ? undefined : { id: tool, name: tool }}
      >
        <option value="">{mcp.allTools}</option>
      </SearchedSelectField>
      <SelectField label={mcp.ruleAccess} fault={errors.access_type?.message} {...form.register("access_type")}>
        {ACCESSES.map((access) => <option key={access} value={access}>{mcp.rules[access]}</option>)}
      </SelectField>
    </DialogForm>
  );
}

function useToolOptions(server: string, search: string | undefined) {
  const { data } = useTools({ server, search }, 1);
  return data && { rows: data.rows.map(({ name }) => ({ id: name, name })), total: data.total };
}
