import { Lock, LockOpen } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextAreaField } from "../parts/fields";
import { Panel } from "../parts/Page";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { retentionTexts } from "../texts/retention";
import { type LegalHold, useReleaseHold, useSetHold } from "./api";
import styles from "./RetentionPage.module.css";

/** The legal hold. While it is active, nothing is removed. */
export function HoldPanel({ hold }: { hold: LegalHold }) {
  const retention = retentionTexts;
  const { administers } = useRights();
  const setBy = useUserName(hold.set_by);
  return (
    <Panel title={retention.hold} actions={administers && <Actions hold={hold} />}>
      <div className={styles["row"]}>
        <span className={styles["names"]}>
          <span>{hold.active ? hold.reason : retention.noHold}</span>
          {hold.active && typeof hold.set_at === "string" && (
            <span className={styles["muted"]}>{retention.setBy(setBy ?? texts.none)} <Time at={hold.set_at} /></span>
          )}
        </span>
        <Badge tone={hold.active ? "warning" : "neutral"}>{hold.active ? retention.holdOn : retention.holdOff}</Badge>
      </div>
    </Panel>
  );
}

function Actions({ hold }: { hold: LegalHold }) {
  const retention = retentionTexts;
  const [open, setOpen] = useState<"set" | "release" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const release = useReleaseHold();
  // The page loads the hold again while the dialog is open. The dialog must not turn into another one.
  const [wasActive] = useResetOnOpen(open === "set", hold.active);
  const close = () => setOpen(null);
  return (
    <span className={styles["actions"]}>
      <Button ref={trigger} size="small" onClick={() => setOpen("set")}><Lock aria-hidden />{hold.active ? retention.changeReason : retention.setHold}</Button>
      {hold.active && <Button size="small" onClick={() => setOpen("release")}><LockOpen aria-hidden />{retention.releaseHold}</Button>}
      <Dialog open={open === "set"} onClose={close} returnTo={trigger} title={wasActive ? retention.reasonTitle : retention.setTitle} text={retention.setText}>
        <ReasonForm hold={hold} wasActive={wasActive} onDone={close} />
      </Dialog>
      <ConfirmDialog
        open={open === "release"} onClose={close} returnTo={trigger} title={retention.releaseTitle} text={retention.releaseText}
        action={retention.releaseNow} row={hold} run={(shown) => release.mutateAsync(shown)} done={retention.released}
      />
    </span>
  );
}

function ReasonForm({ hold, wasActive, onDone }: { hold: LegalHold; wasActive: boolean; onDone: () => void }) {
  const retention = retentionTexts;
  const set = useSetHold(hold);
  const form = useForm({ defaultValues: { reason: hold.reason ?? "" } });
  return (
    <DialogForm
      form={form} action={wasActive ? texts.rules.save : retention.setNow} onCancel={onDone}
      onSubmit={async ({ reason }) => {
        await set.mutateAsync(reason.trim());
        toast(wasActive ? retention.reasonSaved : retention.isSet);
        onDone();
      }}
    >
      <TextAreaField
        label={retention.reason} hint={retention.reasonHint} rows={3} autoFocus maxLength={2000} fault={form.formState.errors.reason?.message}
        {...form.register("reason", { required: retention.reasonRequired })}
      />
    </DialogForm>
  );
}
