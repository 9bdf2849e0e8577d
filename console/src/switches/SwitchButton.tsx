import { Power, PowerOff } from "lucide-react";
import { useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { switchTexts } from "../texts/switches";
import { type Reason, type Target, useSwitch } from "./api";
import { Engage, Release } from "./SwitchForms";

/** A button that stops or releases a provider or a model. A dialog first explains the effect. `whole` is true if
 * `target` is a provider. */
export function SwitchButton({ target, name, stopped, whole }: {
  target: Target;
  name: string;
  stopped: boolean;
  whole: boolean;
}) {
  const switches = switchTexts;
  const [open, setOpen] = useState(false);
  // The page loads the state again while the dialog is open. The dialog must not turn into its opposite.
  const [releases] = useResetOnOpen(open, stopped);
  const trigger = useRef<HTMLButtonElement>(null);
  const change = useSwitch(target);
  const close = () => setOpen(false);

  async function submit(reason: Reason | null) {
    const { confirmed, total } = await change.mutateAsync(reason);
    toast(reason === null ? switches.released(name) : switches.engaged(name, confirmed, total));
    close();
  }

  return (
    <>
      <Button
        ref={trigger} size="small" onClick={() => setOpen(true)}
        aria-label={stopped ? switches.releaseOf(name) : whole ? switches.stopProvider(name) : switches.stopOf(name)}
      >
        {stopped ? <Power aria-hidden /> : <PowerOff aria-hidden />}
        {stopped ? switches.release : whole ? switches.stopAll : switches.stop}
      </Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger}
        title={releases ? switches.releaseTitle(name) : switches.stopTitle(name)}
        text={releases ? switches.releaseText : whole ? switches.stopAllText : switches.stopText}
      >
        {releases ? <Release onSubmit={() => submit(null)} onCancel={close} /> : <Engage onSubmit={submit} onCancel={close} />}
      </Dialog>
    </>
  );
}
