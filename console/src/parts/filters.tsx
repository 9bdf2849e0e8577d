/** Filters that several lists have. */
import { texts } from "../texts";
import { FilterSelect } from "./fields";

/** A filter for all rows, the enabled rows or the disabled rows. */
export function EnabledFilter({ value, onChange }: { value: boolean | undefined; onChange: (value: boolean | undefined) => void }) {
  const { rules } = texts;
  return (
    <FilterSelect
      label={rules.status} value={value === undefined ? "" : String(value)}
      onChange={({ target }) => onChange(target.value === "" ? undefined : target.value === "true")}
    >
      <option value="">{rules.anyStatus}</option>
      <option value="true">{rules.enabled}</option>
      <option value="false">{rules.disabled}</option>
    </FilterSelect>
  );
}

/** A filter for one of several values, or for all rows. */
export function ChoiceFilter<Value extends string>({ label, any, values, nameOf, value, onChange }: {
  label: string;
  any: string;
  values: readonly Value[];
  nameOf: (value: Value) => string;
  value: Value | undefined;
  onChange: (value: Value | undefined) => void;
}) {
  return (
    <FilterSelect label={label} value={value ?? ""} onChange={({ target }) => onChange(values.find((choice) => choice === target.value))}>
      <option value="">{any}</option>
      {values.map((choice) => <option key={choice} value={choice}>{nameOf(choice)}</option>)}
    </FilterSelect>
  );
}
