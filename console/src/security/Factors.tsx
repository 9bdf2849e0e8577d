import { type ReactNode, useRef, useState } from "react";
import { canUsePasskeys } from "../api/passkeys";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { securityTexts } from "../texts/security";
import { useFactors, useRemoveApp, useRemovePasskey } from "./api";
import { AppDialog, CodesDialog, PasskeyDialog } from "./FactorDialogs";
import styles from "./SecurityPage.module.css";

/** The authenticator app, the passkeys and the recovery codes. */
export function Factors() {
  const security = securityTexts;
  const factors = useFactors();
  const { data } = factors;
  if (factors.error && data === undefined) {
    return <Panel title={security.factors}><ErrorState error={factors.error} onRetry={() => void factors.refetch()} /></Panel>;
  }
  if (data === undefined) {
    return (
      <Panel title={security.factors}>
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      </Panel>
    );
  }
  const hasFactor = data.totp !== null || data.passkeys.length > 0;
  return (
    <Panel title={security.factors}>
      {data.enforcement_level === "off" && <p className={styles["text"]}>{security.factorsOff}</p>}
      <ul className={styles["list"]}>
        {data.allowed_methods.includes("totp") && <App enrolled={data.totp} />}
        {data.allowed_methods.includes("webauthn") && (
          <>
            {data.passkeys.map((passkey) => <Passkey key={passkey.id} passkey={passkey} />)}
            {canUsePasskeys() && <NewPasskey />}
          </>
        )}
        {hasFactor && <Codes left={data.recovery_codes_left} />}
      </ul>
    </Panel>
  );
}

function Row({ name, detail, children }: { name: string; detail: ReactNode; children: ReactNode }) {
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]}>{name}</span>
        <span className={styles["muted"]}>{detail}</span>
      </span>
      {children}
    </li>
  );
}

function Used({ at }: { at: string | null }) {
  return at === null ? <>{securityTexts.neverUsed}</> : <>{securityTexts.lastUsed} <Time at={at} as="relative" /></>;
}

function App({ enrolled }: { enrolled: { last_used_at: string | null } | null }) {
  const security = securityTexts;
  const [open, setOpen] = useState<"add" | "remove" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const remove = useRemoveApp();
  const close = () => setOpen(null);
  return (
    <Row name={security.app} detail={enrolled === null ? security.appText : <Used at={enrolled.last_used_at} />}>
      <Button ref={trigger} size="small" onClick={() => setOpen(enrolled === null ? "add" : "remove")} aria-label={enrolled === null ? security.setUpApp : security.removeApp}>
        {enrolled === null ? security.setUp : security.remove}
      </Button>
      {/* This dialog stays rendered after the app is enrolled, because it then shows the recovery codes. */}
      <AppDialog open={open === "add"} onClose={close} returnTo={trigger} />
      <ConfirmDialog
        open={open === "remove"} onClose={close} returnTo={trigger} title={security.removeAppTitle} text={security.removeAppText}
        action={security.removeAppNow} run={() => remove.mutateAsync(undefined)} done={security.appRemoved}
      />
    </Row>
  );
}

function Passkey({ passkey }: { passkey: { id: string; name: string; last_used_at: string | null } }) {
  const security = securityTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const remove = useRemovePasskey();
  return (
    <Row name={passkey.name} detail={<Used at={passkey.last_used_at} />}>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)} aria-label={security.removePasskey(passkey.name)}>{security.remove}</Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} title={security.removePasskeyTitle(passkey.name)}
        text={security.removePasskeyText} action={security.removePasskeyNow} run={() => remove.mutateAsync(passkey.id)}
        done={security.passkeyRemoved(passkey.name)}
      />
    </Row>
  );
}

function NewPasskey() {
  const security = securityTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  return (
    <Row name={security.passkey} detail={security.passkeyText}>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}>{security.addPasskey}</Button>
      <PasskeyDialog open={open} onClose={() => setOpen(false)} returnTo={trigger} />
    </Row>
  );
}

function Codes({ left }: { left: number }) {
  const security = securityTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  return (
    <Row name={security.codes} detail={security.codesLeft(left)}>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}>{security.newCodes}</Button>
      <CodesDialog open={open} onClose={() => setOpen(false)} returnTo={trigger} />
    </Row>
  );
}
