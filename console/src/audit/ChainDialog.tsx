import { ShieldCheck } from "lucide-react";
import { useRef, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { TrialResult, trialStyles } from "../parts/Trial";
import { useRun } from "../parts/useRun";
import { texts } from "../texts";
import { auditChainTexts } from "../texts/audit";
import styles from "./AuditPage.module.css";
import { type ChainPlace, type Verified, verifyChain } from "./verification";

/** The button that verifies the chain, and its dialog. */
export function ChainDialog() {
  const auditChain = auditChainTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const { busy, progress, result, error, start, stop } = useRun<Verified, Verified>();
  function close() {
    stop();
    setOpen(false);
  }
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><ShieldCheck aria-hidden />{auditChain.verify}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={auditChain.title} text={auditChain.text}>
        <div className={styles["result"]}>
          <TrialResult data={result} error={error}>
            {busy && progress !== undefined && (
              <>
                <progress className={styles["progress"]} aria-label={auditChain.title} max={progress.newest} value={progress.last} />
                <p className={trialStyles["muted"]}>{auditChain.progress(progress.last, progress.newest)}</p>
              </>
            )}
            {result !== undefined && <Result verified={result} />}
          </TrialResult>
        </div>
        <DialogActions>
          {busy ? <Button onClick={stop}>{auditChain.stop}</Button> : <Button onClick={close}>{texts.close}</Button>}
          <Button look="primary" busy={busy} onClick={() => start(verifyChain)}>{auditChain.run}</Button>
        </DialogActions>
      </Dialog>
    </>
  );
}

function Result({ verified }: { verified: Verified }) {
  const auditChain = auditChainTexts;
  const { breaks, breakCount, gaps } = verified;
  return (
    <>
      <div className={trialStyles["line"]}>
        <Badge tone={breakCount === 0 ? "success" : "danger"}>{breakCount === 0 ? auditChain.whole : auditChain.broken}</Badge>
        <span>{auditChain.checked(verified.events, verified.first, verified.last)}</span>
      </div>
      {verified.archivedUntil > 0 && <p className={trialStyles["muted"]}>{auditChain.archived(verified.archivedUntil)}</p>}
      {breaks.length > 0 && <Places title={auditChain.places} places={breaks} />}
      {breakCount > breaks.length && <p className={trialStyles["muted"]}>{auditChain.more(breaks.length, breakCount)}</p>}
      {gaps.length > 0 && <Places title={auditChain.gaps} places={gaps} />}
      {breakCount === 0 && verified.newest > 0 && (
        <div>
          <Secret label={auditChain.newest} text={`${verified.newest} ${verified.newestHash}`} />
          <p className={trialStyles["muted"]}>{auditChain.newestHint}</p>
        </div>
      )}
    </>
  );
}

function Places({ title, places }: { title: string; places: ChainPlace[] }) {
  return (
    <section aria-label={title}>
      <h3 className={trialStyles["boxTitle"]}>{title}</h3>
      <ul className={trialStyles["list"]}>
        {places.map(({ sequence, reason }, at) => (
          <li key={at}><strong>{auditChainTexts.sequence(sequence)}</strong> {reason}</li>
        ))}
      </ul>
    </section>
  );
}
