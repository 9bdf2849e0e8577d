import { CopyButton } from "./Copy";
import styles from "./Secret.module.css";

/** A text that the user copies, such as a new secret or a link. The copy button takes the focus. */
export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div className={styles["secret"]}>
      <code aria-label={label} className={styles["text"]}>{text}</code>
      <CopyButton text={text} size="small" autoFocus />
    </div>
  );
}
