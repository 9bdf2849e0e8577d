import { Power, PowerOff } from "lucide-react";
import { useRef, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { type Reason } from "../switches/api";
import { Engage, Release } from "../switches/SwitchForms";
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
  // The page loads the state again while the dialog is open. The dialog must not turn into its opposite.
  const [releases] = useResetOnOpen(open, isStopped);
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
          open={open} onClose={close} returnTo={trigger} title={releases ? switchTexts.releaseTitle(name) : switchTexts.stopTitle(name)}
          text={releases ? mcpTexts.releaseText : target.server_id === undefined ? mcpTexts.stopServerText : mcpTexts.stopToolText}
        >
          {releases ? <Release onSubmit={() => submit(null)} onCancel={close} /> : <Engage onSubmit={submit} onCancel={close} />}
        </Dialog>
      )}
    </>
  );
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
