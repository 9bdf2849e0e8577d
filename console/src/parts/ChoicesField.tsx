import { useState } from "react";
import { texts } from "../texts";
import styles from "./ChoicesField.module.css";
import { classes } from "./classes";
import { CheckboxField, FieldSet } from "./fields";
import fields from "./fields.module.css";

export interface Choice {
  id: string;
  name: string;
}

/** If there are at least this many options, the field has a search box. */
const MIN_SEARCHED_OPTIONS = 9;
const MAX_SHOWN_OPTIONS = 200;

/** A field that selects several options with checkboxes. Initially selected options are listed first. If `onSearch` is
 * set, the server searches the options. `names` then contains the names of selected options that are not in
 * `options`. */
export function ChoicesField({ label, hint, fault, options, chosen, names: knownNames, total, onSearch, onChange }: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  options: readonly Choice[] | undefined;
  chosen: readonly string[];
  names?: ReadonlyMap<string, string>;
  total?: number | undefined;
  onSearch?: (typed: string) => void;
  onChange: (chosen: string[]) => void;
}) {
  const [search, setSearch] = useState("");
  const [first] = useState(chosen);
  const names = new Map([...(knownNames ?? []), ...(options?.map(({ id, name }) => [id, name] as const) ?? [])]);
  const offered = onSearch === undefined ? names.keys() : [...chosen, ...(options?.map(({ id }) => id) ?? [])];
  const all = [...new Set([...first, ...offered])].map((id) => ({ id, name: names.get(id) ?? id }));
  const matching = all.filter(({ name }) => name.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = matching.slice(0, MAX_SHOWN_OPTIONS);
  const hidden = matching.length - shown.length + (options !== undefined && total !== undefined ? Math.max(0, total - options.length) : 0);
  // The search box stays, because the options are those of the last search for a moment after it is emptied.
  const [isSearched, setSearched] = useState(false);
  if (!isSearched && all.length >= MIN_SEARCHED_OPTIONS) setSearched(true);
  const type = (text: string) => {
    setSearch(text);
    onSearch?.(text);
  };
  return (
    <FieldSet label={label} hint={hint} fault={fault}>
      {isSearched && (
        <input
          type="search" aria-label={texts.choices.search(label)} placeholder={texts.choices.search(label)} value={search} spellCheck={false}
          autoCapitalize="none" className={classes(fields["input"], styles["search"])} onChange={({ target }) => type(target.value)}
          // Without this, Enter would submit the surrounding form.
          onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
        />
      )}
      <div className={styles["options"]}>
        {shown.map(({ id, name }) => (
          <CheckboxField
            key={id} label={name} checked={chosen.includes(id)}
            onChange={({ target }) => onChange(target.checked ? [...chosen, id] : chosen.filter((other) => other !== id))}
          />
        ))}
        {options !== undefined && shown.length === 0 && <p className={fields["hint"]}>{all.length === 0 ? texts.choices.empty : texts.choices.none}</p>}
      </div>
      {hidden > 0 && <p className={fields["hint"]}>{texts.choices.more(hidden)}</p>}
      {isSearched && <p className={fields["hint"]} role="status">{texts.choices.chosen(chosen.length)}</p>}
    </FieldSet>
  );
}
