import styles from "./Addresses.module.css";
import { CopyButton } from "./Copy";

/** Addresses and ids that the user enters in another program, each with a copy button. */
export function Addresses({ rows, copyLabel }: {
  rows: readonly { name: string; value: string }[];
  copyLabel: (name: string) => string;
}) {
  return (
    <dl className={styles["rows"]}>
      {rows.map(({ name, value }) => (
        <div key={name} className={styles["row"]}>
          <dt className={styles["name"]}>{name}</dt>
          <dd className={styles["value"]}>
            <code className={styles["text"]}>{value}</code>
            <CopyButton text={value} label={copyLabel(name)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
