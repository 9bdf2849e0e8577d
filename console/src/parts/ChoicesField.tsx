import { X } from "lucide-react";
import { texts } from "../texts";
import { Button } from "./Button";
import styles from "./ChoicesField.module.css";
import { SelectField } from "./fields";

export interface Choice {
  id: string;
  name: string;
}

/** Several of a list: what is chosen, each with a button that removes it, and a select that adds. */
export function ChoicesField({ label, hint, fault, addText, options, chosen, onChange }: {
  label: string;
  hint?: string;
  fault?: string | undefined;
  addText: string;
  options: readonly Choice[] | undefined;
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const names = new Map(options?.map(({ id, name }) => [id, name]));
  return (
    <div className={styles["choices"]}>
      <SelectField
        label={label} hint={hint} fault={fault} value=""
        onChange={({ target }) => onChange([...chosen, target.value])}
      >
        <option value="">{addText}</option>
        {options?.filter(({ id }) => !chosen.includes(id)).map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
      </SelectField>
      {chosen.length > 0 && (
        <ul className={styles["chosen"]} aria-label={label}>
          {chosen.map((id) => {
            const name = names.get(id) ?? id;
            return (
              <li key={id} className={styles["choice"]}>
                <span className={styles["name"]} title={name}>{name}</span>
                <Button
                  look="quiet" size="icon" aria-label={texts.removeChoice(name)}
                  onClick={() => onChange(chosen.filter((other) => other !== id))}
                >
                  <X aria-hidden size={14} />
                </Button>
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}
