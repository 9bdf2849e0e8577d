import { CopyButton } from "./Copy";
import styles from "./Secret.module.css";

/** A text that the user copies, such as a new secret or a link. The copy button takes the focus. `onCopied` is called when
 * the user has copied the text with the button, or a selection of it. */
export function Secret({ label, text, onCopied }: { label: string; text: string; onCopied?: () => void }) {
  return (
    <div className={styles["secret"]} onCopy={onCopied}>
      <code aria-label={label} className={styles["text"]}>{text}</code>
      <CopyButton text={text} size="small" autoFocus onCopied={onCopied} />
    </div>
  );
}
