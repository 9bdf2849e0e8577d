import { Power, PowerOff } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField } from "../parts/fields";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { type Reason, REASONS } from "../switches/api";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { switchTexts } from "../texts/switches";
import { type Propagation, type SwitchTarget, useMcpSwitch, useSwitchPropagation } from "./api";
import styles from "./mcp.module.css";

/** A button that stops or releases a server or a tool. The dialog then shows which workers have confirmed the change. */
export function McpSwitchButton({ target }: { target: SwitchTarget }) {
  const { name, switched_off_at: stoppedAt } = target;
  const isStopped = stoppedAt !== null;
  const [open, setOpen] = useState(false);
  const [done, setDone] = useResetOnOpen<{ stopped: boolean; propagation: Propagation } | null>(open, null);
  const trigger = useRef<HTMLButtonElement>(null);
  const change = useMcpSwitch(target);
  const close = () => setOpen(false);
  const submit = async (reason: Reason | null) => setDone({ stopped: reason !== null, propagation: await change.mutateAsync(reason) });
  return (
    <>
      <Button
        ref={trigger} size="small" onClick={() => setOpen(true)}
        aria-label={isStopped ? switchTexts.releaseOf(name) : switchTexts.stopOf(name)}
      >
        {isStopped ? <Power aria-hidden /> : <PowerOff aria-hidden />}
        {isStopped ? switchTexts.release : switchTexts.stop}
      </Button>
      {done !== null ? (
        <Dialog open={open} onClose={close} returnTo={trigger} title={done.stopped ? mcpTexts.stoppedTitle(name) : mcpTexts.releasedTitle(name)}>
          <Confirmations id={target.id} propagation={done.propagation} />
          <DialogActions><Button look="primary" autoFocus onClick={close}>{texts.done}</Button></DialogActions>
        </Dialog>
      ) : (
        <Dialog
          open={open} onClose={close} returnTo={trigger} title={isStopped ? switchTexts.releaseTitle(name) : switchTexts.stopTitle(name)}
          text={isStopped ? mcpTexts.releaseText : target.server_id === undefined ? mcpTexts.stopServerText : mcpTexts.stopToolText}
        >
          {isStopped ? <Release onSubmit={() => submit(null)} onCancel={close} /> : <Engage onSubmit={submit} onCancel={close} />}
        </Dialog>
      )}
    </>
  );
}

function Engage({ onSubmit, onCancel }: { onSubmit: (reason: Reason) => Promise<void>; onCancel: () => void }) {
  const form = useForm<{ reason: Reason }>({ defaultValues: { reason: "security_event" } });
  return (
    <DialogForm form={form} action={switchTexts.stopNow} look="danger" onSubmit={({ reason }) => onSubmit(reason)} onCancel={onCancel}>
      <SelectField label={switchTexts.reason} fault={form.formState.errors.reason?.message} {...form.register("reason")}>
        {REASONS.map((reason) => <option key={reason} value={reason}>{switchTexts.reasons[reason]}</option>)}
      </SelectField>
    </DialogForm>
  );
}

function Release({ onSubmit, onCancel }: { onSubmit: () => Promise<void>; onCancel: () => void }) {
  const form = useForm();
  return <DialogForm form={form} action={switchTexts.releaseNow} onSubmit={onSubmit} onCancel={onCancel}>{null}</DialogForm>;
}

/** The workers that have confirmed the change. Screen readers announce each change of the numbers. */
function Confirmations({ id, propagation }: { id: string; propagation: Propagation }) {
  const { confirmed, total, pending } = useSwitchPropagation(id, propagation);
  return (
    <div className={styles["confirmations"]} role="status">
      <Badge tone={pending.length === 0 ? "success" : "warning"}>{mcpTexts.confirmed(confirmed, total)}</Badge>
      {pending.length > 0 && <p>{mcpTexts.pending(pending.join(", "))}</p>}
    </div>
  );
}
