import { CopyButton } from "./Copy";
import styles from "./Secret.module.css";

/** Something that is shown once, with a button that copies it. */
export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div className={styles["secret"]}>
      <code aria-label={label} className={styles["text"]}>{text}</code>
      <CopyButton text={text} size="small" autoFocus />
    </div>
  );
}
