import { CopyButton } from "./Copy";
import { isSelected } from "./selection";
import styles from "./Secret.module.css";

/** A text that the user copies, such as a new secret or a link. The copy button takes the focus. `onCopied` is called when
 * the user has copied the whole text, with the button or as a selection. */
export function Secret({ label, text, onCopied }: { label: string; text: string; onCopied?: () => void }) {
  return (
    <div className={styles["secret"]} onCopy={() => isSelected(text) && onCopied?.()}>
      <code aria-label={label} className={styles["text"]}>{text}</code>
      <CopyButton text={text} size="small" autoFocus onCopied={onCopied} />
    </div>
  );
}
