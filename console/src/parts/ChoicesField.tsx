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

/** From this number of options on, they can be searched. */
const MIN_SEARCHED_OPTIONS = 9;

/** Several of a list, as boxes to tick. Those that are chosen at first stand first. */
export function ChoicesField({ label, hint, fault, options, chosen, onChange }: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  options: readonly Choice[] | undefined;
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const [search, setSearch] = useState("");
  const [first] = useState(chosen);
  const names = new Map(options?.map(({ id, name }) => [id, name]));
  const all = [...new Set([...first, ...names.keys()])].map((id) => ({ id, name: names.get(id) ?? id }));
  const shown = all.filter(({ name }) => name.toLowerCase().includes(search.trim().toLowerCase()));
  return (
    <FieldSet label={label} hint={hint} fault={fault}>
      {all.length >= MIN_SEARCHED_OPTIONS && (
        <input
          type="search" aria-label={texts.choices.search(label)} placeholder={texts.choices.search(label)} value={search} spellCheck={false}
          autoCapitalize="none" className={classes(fields["input"], styles["search"])} onChange={({ target }) => setSearch(target.value)}
          // Enter would submit the form around it.
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
      {all.length >= MIN_SEARCHED_OPTIONS && <p className={fields["hint"]} role="status">{texts.choices.chosen(chosen.length)}</p>}
    </FieldSet>
  );
}
