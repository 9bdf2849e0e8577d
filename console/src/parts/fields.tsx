/** Form fields with a label, a hint and an error message. */
import { ChevronDown } from "lucide-react";
import { type ComponentPropsWithRef, type ReactNode, useId } from "react";
import type { Source } from "../api/configuration";
import { texts } from "../texts";
import { classes } from "./classes";
import styles from "./fields.module.css";

interface Labelled {
  label: string;
  hint?: string | undefined;
  /** Where the effective value comes from. */
  source?: Source | undefined;
  fault?: string | undefined;
}

function Field({ id, label, hint, source, fault, children }: Labelled & { id: string; children: ReactNode }) {
  return (
    <div className={styles["field"]}>
      <label className={styles["label"]} htmlFor={id}>{label}</label>
      {children}
      {fault !== undefined && <p className={styles["fault"]} id={`${id}-fault`} role="alert">{fault}</p>}
      {fault === undefined && <Hint id={`${id}-hint`} hint={hint} source={source} />}
    </div>
  );
}

function Hint({ id, hint, source }: { id?: string; hint: string | undefined; source: Source | undefined }) {
  if (hint === undefined && source === undefined) return null;
  return (
    <p className={styles["hint"]} id={id}>
      {hint} {source !== undefined && <span className={styles["source"]}>{texts.sources[source]}</span>}
    </p>
  );
}

/** Shows the source of the value of a group of fields. */
export function SourceHint({ source }: { source: Source | undefined }) {
  return <Hint hint={undefined} source={source} />;
}

function described(id: string, { hint, source, fault }: Labelled) {
  return {
    id,
    "aria-invalid": fault !== undefined || undefined,
    "aria-describedby": fault !== undefined ? `${id}-fault` : hint !== undefined || source !== undefined ? `${id}-hint` : undefined,
  };
}

export function TextField({ label, hint, source, fault, className, ...rest }: Labelled & ComponentPropsWithRef<"input">) {
  const id = useId();
  const labelled = { label, hint, source, fault };
  return (
    <Field id={id} {...labelled}>
      <input {...rest} {...described(id, labelled)} className={classes(styles["input"], className)} />
    </Field>
  );
}

export function SelectField({ label, hint, source, fault, children, ...rest }: Labelled & ComponentPropsWithRef<"select">) {
  const id = useId();
  const labelled = { label, hint, source, fault };
  return (
    <Field id={id} {...labelled}>
      <span className={styles["select"]}>
        <select {...rest} {...described(id, labelled)} className={styles["input"]}>{children}</select>
        <ChevronDown aria-hidden size={14} />
      </span>
    </Field>
  );
}

/** A select without a visible label, for bars of filters. */
export function FilterSelect({ label, children, ...rest }: { label: string } & ComponentPropsWithRef<"select">) {
  return (
    <span className={styles["select"]}>
      <select {...rest} aria-label={label} className={classes(styles["input"], styles["compact"])}>{children}</select>
      <ChevronDown aria-hidden size={14} />
    </span>
  );
}

export function TextAreaField({ label, hint, source, fault, className, ...rest }: Labelled & ComponentPropsWithRef<"textarea">) {
  const id = useId();
  const labelled = { label, hint, source, fault };
  return (
    <Field id={id} {...labelled}>
      <textarea {...rest} {...described(id, labelled)} className={classes(styles["input"], styles["area"], className)} />
    </Field>
  );
}

/** A box to tick, with its label beside it. */
export function CheckboxField({ label, hint, source, fault, ...rest }: Labelled & ComponentPropsWithRef<"input">) {
  const id = useId();
  const labelled = { label, hint, source, fault };
  return (
    <div className={styles["check"]}>
      <input type="checkbox" {...rest} {...described(id, labelled)} />
      <label htmlFor={id}>{label}</label>
      {fault !== undefined && <p className={styles["fault"]} id={`${id}-fault`} role="alert">{fault}</p>}
      {fault === undefined && <Hint id={`${id}-hint`} hint={hint} source={source} />}
    </div>
  );
}

/** Fields that belong together, under one label. */
export function FieldSet({ label, hint, fault, children }: Labelled & { children: ReactNode }) {
  return (
    <fieldset className={styles["set"]}>
      <legend className={styles["legend"]}>{label}</legend>
      {children}
      {fault !== undefined && <p className={styles["fault"]} role="alert">{fault}</p>}
      {hint !== undefined && fault === undefined && <p className={styles["hint"]}>{hint}</p>}
    </fieldset>
  );
}
