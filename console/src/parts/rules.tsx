/** Components for lists of rules, such as DLP rules, content filters and policies. */
import { Ban, CircleCheck, Pencil, Plus, Trash2 } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { texts } from "../texts";
import { Badge } from "./Badge";
import { Button } from "./Button";
import { classes } from "./classes";
import { ConfirmDialog } from "./ConfirmDialog";
import { Dialog } from "./Dialog";
import { MenuItem } from "./Menu";
import { RowMenu } from "./RowMenu";
import styles from "./rules.module.css";
import { errorText } from "./states";
import { toast } from "./toasts";

/** Renders the form of a rule. The form calls `close` when it is saved or cancelled. */
export type Editor = (close: () => void) => ReactNode;

export function NewRuleButton({ label, title, editor, look = "primary", size = "medium" }: {
  label: string;
  title: string;
  editor: Editor;
  look?: "primary" | "plain";
  size?: "medium" | "small";
}) {
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} look={look} size={size} onClick={() => setOpen(true)}><Plus aria-hidden />{label}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={title} wide>{editor(close)}</Dialog>
    </>
  );
}

/** The menu of a rule: the items in `children`, edit, enable or disable, delete. Enable and disable are shown only if
 * `onToggle` is set. */
export function RuleMenu({ name, enabled = true, editor, deleteText = texts.rules.deleteText, onToggle, onDelete, children }: {
  name: string;
  enabled?: boolean;
  editor: Editor;
  deleteText?: string;
  onToggle?: () => Promise<unknown>;
  onDelete: () => Promise<unknown>;
  children?: ReactNode;
}) {
  const { rules } = texts;
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(null);

  function toggle() {
    onToggle?.().then(
      () => toast(enabled ? rules.turnedOff(name) : rules.turnedOn(name)),
      (error: unknown) => toast(errorText(error), "failed"),
    );
  }

  return (
    <>
      <RowMenu label={rules.actionsOf(name)} trigger={trigger}>
        {children}
        <MenuItem onClick={() => setOpen("edit")}><Pencil aria-hidden size={15} />{rules.edit}</MenuItem>
        {onToggle !== undefined && (
          <MenuItem onClick={toggle}>
            {enabled ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
            {enabled ? rules.disable : rules.enable}
          </MenuItem>
        )}
        <MenuItem danger onClick={() => setOpen("delete")}><Trash2 aria-hidden size={15} />{rules.remove}</MenuItem>
      </RowMenu>
      <Dialog open={open === "edit"} onClose={close} returnTo={trigger} title={rules.editTitle(name)} wide>{editor(close)}</Dialog>
      <ConfirmDialog
        open={open === "delete"} onClose={close} returnTo={trigger} title={rules.deleteTitle(name)} text={deleteText}
        action={rules.delete} run={onDelete} done={rules.deleted(name)}
      />
    </>
  );
}

/** The first cell of a rule's row, with the name and below it `detail`. If `opener` is set, the name is a button that
 * opens the row. */
export function RuleName({ name, hint = name, detail, code = false, opener }: {
  name: string;
  hint?: string;
  detail: string;
  code?: boolean;
  opener?: { id: string; label: string; onOpen: () => void };
}) {
  return (
    <span className={styles["cell"]}>
      {opener === undefined ? (
        <span className={styles["name"]} title={hint}>{name}</span>
      ) : (
        <button type="button" className={styles["opener"]} data-open={opener.id} title={hint} aria-label={opener.label} onClick={opener.onOpen}>
          {name}
        </button>
      )}
      <span className={classes(styles["detail"], code && styles["mono"])} title={detail}>{detail}</span>
    </span>
  );
}

export function EnabledBadge({ enabled }: { enabled: boolean }) {
  return <Badge tone={enabled ? "success" : "neutral"}>{enabled ? texts.rules.enabled : texts.rules.disabled}</Badge>;
}
