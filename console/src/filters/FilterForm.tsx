import { useForm, type UseFormReturn } from "react-hook-form";
import { GroupSelect } from "../groups/GroupSelect";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextAreaField, TextField } from "../parts/fields";
import { linesOf, textOf } from "../parts/lines";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { filterTexts } from "../texts/filters";
import { type ContentFilter, type FilterType, type NewContentFilter, TYPES, useSaveFilter } from "./api";

interface FilterFields {
  name: string;
  description: string;
  filter_type: FilterType;
  /** Empty if the filter applies to everybody. */
  group_id: string;
  enabled: boolean;
  priority: number;
  keywords: string;
  topics: string;
  threshold: number;
  instruction: string;
}

const DEFAULT_PRIORITY = 100;
const DEFAULT_THRESHOLD = 0.5;

function fieldsOf(filter: ContentFilter | undefined): FilterFields {
  const config = filter?.config ?? {};
  return {
    name: filter?.name ?? "",
    description: filter?.description ?? "",
    filter_type: filter?.filter_type ?? "keyword_block",
    group_id: filter?.group_id ?? "",
    enabled: filter?.enabled ?? true,
    priority: filter?.priority ?? DEFAULT_PRIORITY,
    keywords: textOf(config["keywords"]),
    topics: textOf(config["topics"]),
    threshold: typeof config["threshold"] === "number" ? config["threshold"] : DEFAULT_THRESHOLD,
    instruction: typeof config["instruction"] === "string" ? config["instruction"] : "",
  };
}

/** Converts the fields to a request body. `config` contains only the fields of the selected type. */
function bodyOf(fields: FilterFields): NewContentFilter {
  const { name, description, filter_type, group_id, enabled, priority } = fields;
  const scope = group_id === "" ? "org" as const : "group" as const;
  return {
    name, description: description.trim() || null, filter_type, config: configOf(fields), scope,
    group_id: group_id || null, enabled, priority,
  };
}

function configOf({ filter_type, keywords, topics, threshold, instruction }: FilterFields) {
  if (filter_type === "keyword_block") return { keywords: linesOf(keywords) };
  if (filter_type === "topic_block") return { topics: linesOf(topics), threshold };
  return { instruction };
}

/** Creates and edits a filter. */
export function FilterForm({ filter, onDone }: { filter?: ContentFilter; onDone: () => void }) {
  const { rules } = texts;
  const filters = filterTexts;
  const form = useForm<FilterFields>({ defaultValues: fieldsOf(filter) });
  const save = useSaveFilter(filter);
  const { errors } = form.formState;
  const [type, group] = form.watch(["filter_type", "group_id"]);
  return (
    <DialogForm
      form={form} action={filter === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { name } = await save.mutateAsync(bodyOf(fields));
        toast(filter === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField label={rules.description} autoComplete="off" maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <SelectField label={filters.type} fault={errors.filter_type?.message} {...form.register("filter_type")}>
        {TYPES.map((option) => <option key={option} value={option}>{filters.types[option]}</option>)}
      </SelectField>
      <TypeFields form={form} type={type} />
      <Fields>
        <GroupSelect
          label={filters.scope} fault={errors.group_id?.message} value={group}
          onChange={(id) => form.setValue("group_id", id, { shouldDirty: true })}
        >
          <option value="">{filters.everybody}</option>
        </GroupSelect>
        <TextField
          label={rules.priority} hint={rules.priorityHint} type="number" step={1} fault={errors.priority?.message}
          {...form.register("priority", { valueAsNumber: true })}
        />
      </Fields>
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
    </DialogForm>
  );
}

/** The fields that are specific to the selected type. */
function TypeFields({ form, type }: { form: UseFormReturn<FilterFields>; type: FilterType }) {
  const filters = filterTexts;
  const { errors } = form.formState;
  if (type === "keyword_block") {
    return <TextAreaField label={filters.keywords} hint={filters.keywordsHint} rows={5} fault={errors.keywords?.message} {...form.register("keywords")} />;
  }
  if (type === "custom_instruction") {
    return (
      <TextAreaField
        label={filters.instruction} hint={filters.instructionHint} rows={6} maxLength={10_000} fault={errors.instruction?.message}
        {...form.register("instruction")}
      />
    );
  }
  return (
    <>
      <TextAreaField label={filters.topics} hint={filters.topicsHint} rows={4} fault={errors.topics?.message} {...form.register("topics")} />
      <TextField
        label={filters.threshold} hint={filters.thresholdHint} type="number" min={0} max={1} step="any" fault={errors.threshold?.message}
        {...form.register("threshold", { valueAsNumber: true })}
      />
    </>
  );
}
