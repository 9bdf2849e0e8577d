import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SourceHint, TextField } from "../parts/fields";
import { percent } from "../parts/format";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { trialStyles } from "../parts/Trial";
import { replayTexts } from "../texts/dlp";
import { type Sampling, useSampleCount, useSampling, useUpdateSampling } from "./replay";

const MAX_RETENTION_DAYS = 90;

/** Shows whether requests are recorded, and the number of recorded requests. Administrators can change the
 * recording. */
export function SamplingPanel() {
  const replay = replayTexts;
  const { administers } = useRights();
  const sampling = useSampling();
  const samples = useSampleCount();
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  const { data } = sampling;
  if (sampling.error && data === undefined) return <ErrorState error={sampling.error} onRetry={() => void sampling.refetch()} />;
  return (
    <Panel
      title={replay.samplesTitle}
      actions={administers && data && <Button ref={trigger} size="small" onClick={() => setOpen(true)}>{replay.change}</Button>}
    >
      <div className={trialStyles["body"]}>
        {data === undefined ? <Skeleton width="60%" /> : (
          <p>
            {data.share === 0 ? replay.samplesOff : replay.samplesOn(percent(data.share), data.retention_days)}
            {samples.data !== undefined && (data.share > 0 || samples.data > 0) && ` ${replay.samples(samples.data)}`}
          </p>
        )}
        <SourceHint source={data?.sources["share"]} />
      </div>
      {data && (
        <Dialog open={open} onClose={close} returnTo={trigger} title={replay.samplingTitle} text={replay.samplingText}>
          <SamplingForm sampling={data} onDone={close} />
        </Dialog>
      )}
    </Panel>
  );
}

function SamplingForm({ sampling, onDone }: { sampling: Sampling & { etag: string }; onDone: () => void }) {
  const replay = replayTexts;
  // The version whose values the form shows, even if the setting is loaded again.
  const [version] = useState(sampling.etag);
  const update = useUpdateSampling();
  const form = useForm({ defaultValues: { share: percentOf(sampling.share), retention_days: String(sampling.retention_days) } });
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={replay.save} onCancel={onDone}
      onSubmit={async ({ share, retention_days }) => {
        await update.mutateAsync({ version, share: Number(share) / 100, retention_days: Number(retention_days) });
        toast(replay.saved);
        onDone();
      }}
    >
      <TextField
        label={replay.share} hint={replay.shareHint} source={sampling.sources["share"]} inputMode="decimal" autoFocus autoComplete="off" fault={errors.share?.message}
        {...form.register("share", { validate: (typed) => (typed.trim() !== "" && Number(typed) >= 0 && Number(typed) <= 100) || replay.shareRange })}
      />
      <TextField
        label={replay.retention} hint={replay.retentionHint} source={sampling.sources["retention_days"]} inputMode="numeric" autoComplete="off" fault={errors.retention_days?.message}
        {...form.register("retention_days", {
          validate: (typed) => (/^\d+$/.test(typed) && Number(typed) >= 1 && Number(typed) <= MAX_RETENTION_DAYS) || replay.retentionRange,
        })}
      />
    </DialogForm>
  );
}

/** Returns the share in percent, without rounding errors of floating-point numbers. */
function percentOf(share: number): string {
  return String(Number((share * 100).toPrecision(10)));
}
