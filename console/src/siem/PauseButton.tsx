import { Pause, Play } from "lucide-react";
import { useRef, useState } from "react";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { siemTexts } from "../texts/siem";
import { type Siem, useSetEnabled } from "./api";

/** Pauses or resumes forwarding. */
export function PauseButton({ siem: { enabled } }: { siem: Siem }) {
  const siem = siemTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const setEnabled = useSetEnabled();
  return (
    <>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}>
        {enabled ? <Pause aria-hidden /> : <Play aria-hidden />}{enabled ? siem.pause : siem.resume}
      </Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} look={enabled ? "danger" : "primary"}
        title={enabled ? siem.pauseTitle : siem.resumeTitle} text={enabled ? siem.pauseText : siem.resumeText}
        action={enabled ? siem.pauseNow : siem.resumeNow} done={enabled ? siem.paused : siem.resumed}
        row={enabled} run={(wasEnabled) => setEnabled.mutateAsync(!wasEnabled)}
      />
    </>
  );
}
