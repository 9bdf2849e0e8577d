import { Construction } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { useKept } from "../api/versions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { systemTexts } from "../texts/system";
import { type Maintenance, useMaintenance, useSwitchMaintenance } from "./api";
import styles from "./SystemPage.module.css";

const DEFAULT_DRAIN_SECONDS = 30;
const MAX_DRAIN_SECONDS = 600;

/** Shows whether maintenance is on. During maintenance, new requests are refused. Operators can switch it on and
 * off. */
export function MaintenancePanel() {
  const system = systemTexts;
  const { operates } = useRights();
  const maintenance = useMaintenance();
  const { data } = maintenance;
  return (
    <Panel title={system.maintenance} actions={operates && data !== undefined && <Switch maintenance={data} />}>
      {maintenance.error && data === undefined ? (
        <ErrorState error={maintenance.error} onRetry={() => void maintenance.refetch()} />
      ) : data === undefined ? (
        <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="30%" /></div>
      ) : (
        <div className={styles["row"]}>
          <span className={styles["names"]}>
            <span>{data.maintenance_enabled ? system.closed : system.open}</span>
            {data.message !== null && <span className={styles["muted"]}>{system.messageOf(data.message)}</span>}
            {data.enabled_at !== null && <span className={styles["muted"]}>{system.since} <Time at={data.enabled_at} /></span>}
            {!operates && <span className={styles["muted"]}>{system.onlyOperators}</span>}
          </span>
          <Badge tone={data.maintenance_enabled ? "warning" : "success"}>{data.maintenance_enabled ? system.on : system.off}</Badge>
        </div>
      )}
    </Panel>
  );
}

function Switch({ maintenance }: { maintenance: Maintenance }) {
  const system = systemTexts;
  const { maintenance_enabled: isOn } = maintenance;
  const [open, setOpen] = useState<"start" | "end" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const change = useSwitchMaintenance();
  const [wasOn] = useResetOnOpen(open !== null, isOn);
  const close = () => setOpen(null);
  return (
    <span className={styles["actions"]}>
      {isOn && <Button size="small" onClick={() => setOpen("start")}>{system.changeMessage}</Button>}
      <Button ref={trigger} size="small" onClick={() => setOpen(isOn ? "end" : "start")}>
        <Construction aria-hidden />{isOn ? system.end : system.start}
      </Button>
      <Dialog
        open={open === "start"} onClose={close} returnTo={trigger} title={wasOn ? system.changeMessage : system.startTitle} text={system.startText}
      >
        <StartForm maintenance={maintenance} onDone={close} />
      </Dialog>
      <ConfirmDialog
        open={open === "end"} onClose={close} returnTo={trigger} look="primary" title={system.endTitle} text={system.endText} action={system.end}
        row={maintenance} run={({ etag: version }) => change.mutateAsync({ version, enabled: false, drain_timeout_seconds: 0 })} done={system.ended}
      />
    </span>
  );
}

function StartForm({ maintenance, onDone }: { maintenance: Maintenance; onDone: () => void }) {
  const system = systemTexts;
  // The panel loads the state again while the form is open, and while the platform waits for running requests.
  const { kept } = useKept(maintenance);
  const { maintenance_enabled: isOn, etag: version } = kept;
  const change = useSwitchMaintenance();
  const form = useForm({ defaultValues: { message: kept.message ?? "", drain_timeout_seconds: isOn ? 0 : DEFAULT_DRAIN_SECONDS } });
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={isOn ? texts.rules.save : system.startNow} look={isOn ? "primary" : "danger"} onCancel={onDone}
      onSubmit={async ({ message, drain_timeout_seconds: seconds }) => {
        const result = await change.mutateAsync({ version, enabled: true, message: message.trim() || null, drain_timeout_seconds: seconds });
        toast(isOn ? system.messageChanged : system.started(result.active_requests_drained));
        onDone();
      }}
    >
      <TextField
        label={system.message} hint={system.messageHint} autoFocus autoComplete="off" maxLength={500} fault={errors.message?.message}
        {...form.register("message")}
      />
      {!isOn && (
        <TextField
          label={system.drainSeconds} hint={system.drainHint} type="number" min={0} max={MAX_DRAIN_SECONDS} step={1}
          fault={errors.drain_timeout_seconds?.message}
          {...form.register("drain_timeout_seconds", { valueAsNumber: true, required: system.secondsRequired })}
        />
      )}
    </DialogForm>
  );
}
