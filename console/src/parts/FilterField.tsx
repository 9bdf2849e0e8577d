import { useEffect, useState } from "react";
import { classes } from "./classes";
import fields from "./fields.module.css";
import styles from "./FilterField.module.css";

/** A text filter. It is applied when the user presses Enter or leaves the field. */
export function FilterField({ label, placeholder, value = "", onChange }: {
  label: string;
  placeholder: string;
  value?: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const apply = () => {
    if (typed.trim() !== value) onChange(typed.trim() || undefined);
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); apply(); }}>
      <input
        type="search" aria-label={label} placeholder={placeholder} value={typed} spellCheck={false} autoCapitalize="none"
        className={classes(fields["input"], fields["compact"], styles["field"], value !== "" && styles["active"])}
        onChange={({ target }) => setTyped(target.value)} onBlur={apply}
      />
    </form>
  );
}
