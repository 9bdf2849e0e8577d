import { type ReactNode, useState } from "react";
import { texts } from "../texts";
import type { Choice } from "./ChoicesField";
import { classes } from "./classes";
import { FilterSelect, SelectField } from "./fields";
import fields from "./fields.module.css";
import styles from "./SearchedSelect.module.css";
import { useTyped } from "./useTyped";

/** The first options that match a search, and the number of all matching options. */
export interface Options {
  rows: readonly Choice[];
  total: number;
}

interface Props {
  label: string;
  value: string;
  onChange: (id: string) => void;
  /** A hook that returns the options whose names contain the search text. */
  useOptions: (search: string | undefined) => Options | undefined;
  /** The option of `value`. It can be missing from the first options. */
  chosen: Choice | undefined;
  /** The option with an empty value, if there is one. */
  children?: ReactNode;
}

/** A select for a list of any length. If the options are not complete, it has a search box, and the server searches the
 * list. */
export function SearchedSelectField({ hint, fault, autoFocus, ...props }: Props & { hint?: string; fault?: string | undefined; autoFocus?: boolean }) {
  const { search, options } = useSearchedOptions(props);
  return (
    <div className={styles["field"]}>
      {search}
      <SelectField
        label={props.label} hint={hint} fault={fault} autoFocus={autoFocus} value={props.value} onChange={({ target }) => props.onChange(target.value)}
      >
        {props.children}
        {options}
      </SelectField>
    </div>
  );
}

/** A compact `SearchedSelectField` for a filter bar. */
export function SearchedFilterSelect(props: Props) {
  const { search, options } = useSearchedOptions(props, true);
  return (
    <>
      {search}
      <FilterSelect label={props.label} value={props.value} onChange={({ target }) => props.onChange(target.value)}>
        {props.children}
        {options}
      </FilterSelect>
    </>
  );
}

function useSearchedOptions({ label, chosen, useOptions }: Props, compact = false): { search: ReactNode; options: ReactNode } {
  const [typed, setTyped] = useState("");
  const data = useOptions(useTyped(typed));
  const rows = data?.rows ?? [];
  // The search box stays, because the options are those of the last search for a moment after it is emptied.
  const [isSearched, setSearched] = useState(false);
  if (!isSearched && data !== undefined && data.total > rows.length) setSearched(true);
  const isMissing = chosen !== undefined && rows.every(({ id }) => id !== chosen.id);
  const search = isSearched && (
    <input
      type="search" aria-label={texts.choices.search(label)} placeholder={texts.choices.search(label)} value={typed} spellCheck={false}
      autoCapitalize="none" className={classes(fields["input"], compact && fields["compact"], compact && styles["compact"])}
      onChange={({ target }) => setTyped(target.value)}
      // Without this, Enter would submit the surrounding form.
      onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
    />
  );
  const options = (
    <>
      {isMissing && <option value={chosen.id}>{chosen.name}</option>}
      {rows.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
      {data !== undefined && data.total > rows.length && <option disabled>{texts.choices.more(data.total - rows.length)}</option>}
    </>
  );
  return { search, options };
}
