/** Filters that several lists have. */
import { texts } from "../texts";
import { FilterSelect } from "./fields";

/** All rows, the enabled ones or the disabled ones. */
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

/** One of some values, or all rows. */
export function ChoiceFilter<Value extends string>({ label, any, values, nameOf, value, onChange }: {
  label: string;
  any: string;
  values: readonly Value[];
  nameOf: (value: Value) => string;
  value: Value | undefined;
  onChange: (value: Value | undefined) => void;
}) {
  return (
    <FilterSelect label={label} value={value ?? ""} onChange={({ target }) => onChange(values.find((each) => each === target.value))}>
      <option value="">{any}</option>
      {values.map((each) => <option key={each} value={each}>{nameOf(each)}</option>)}
    </FilterSelect>
  );
}
