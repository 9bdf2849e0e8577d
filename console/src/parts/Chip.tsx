import { X } from "lucide-react";
import styles from "./Chip.module.css";

/** An active filter that comes from a link and has no field on the page, with a button that removes it. */
export function Chip({ text, removeLabel, onRemove }: { text: string; removeLabel: string; onRemove: () => void }) {
  return (
    <span className={styles["chip"]}>
      {text}
      <button type="button" aria-label={removeLabel} onClick={onRemove}><X aria-hidden size={12} /></button>
    </span>
  );
}
