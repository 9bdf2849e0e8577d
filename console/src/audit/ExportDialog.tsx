import { Download } from "lucide-react";
import { Fragment, type ReactNode, useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { SelectField, TextField } from "../parts/fields";
import { Time } from "../parts/Time";
import { Fields, TrialResult, trialStyles } from "../parts/Trial";
import { useRun } from "../parts/useRun";
import { texts } from "../texts";
import { auditExportTexts } from "../texts/audit";
import { useChosenActor } from "./actors";
import type { AuditFilters } from "./api";
import styles from "./AuditPage.module.css";
import { type Exported, type ExportFormat, fileOf, FORMATS, readEvents, save } from "./exporting";

interface ExportFields {
  format: ExportFormat;
  from: string;
  to: string;
}

/** The button that exports events, and its dialog. */
export function ExportDialog({ filters }: { filters: AuditFilters }) {
  const auditExport = auditExportTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const { busy, progress, result, error, start, stop } = useRun<number, Exported>();
  const form = useForm<ExportFields>({ defaultValues: { format: "csv", from: "", to: "" } });
  const actor = useChosenActor(filters.actor_id);
  const { from, to, action, resource_id: resource, request_id: request } = filters;
  const active = [
    from !== undefined && <>{auditExport.after} <Time at={from} /></>, to !== undefined && <>{auditExport.before} <Time at={to} /></>,
    action, actor?.name, resource, request,
  ].filter(Boolean);
  function close() {
    stop();
    setOpen(false);
  }
  const run = form.handleSubmit(({ format, from, to }) => start(async (report, signal) => {
    const exported = await readEvents({ ...filters, ...periodOf(from, to) }, report, signal);
    if (exported.events.length > 0) save(fileOf(exported.events, format), auditExport.file(format));
    return exported;
  }));
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><Download aria-hidden />{auditExport.export}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={auditExport.title} text={auditExport.text}>
        <form className={styles["result"]} noValidate onSubmit={(event) => { event.preventDefault(); if (!busy) void run(); }}>
          {active.length > 0 && (
            <p>
              <span className={trialStyles["muted"]}>{auditExport.filters}</span>{" "}
              {active.map((filter, at) => <Fragment key={at}>{at > 0 && " · "}{filter}</Fragment>)}
            </p>
          )}
          <SelectField label={auditExport.format} {...form.register("format")}>
            {FORMATS.map((format) => <option key={format} value={format}>{auditExport.formats[format]}</option>)}
          </SelectField>
          <Fields>
            <TextField label={auditExport.from} type="date" {...form.register("from")} />
            <TextField
              label={auditExport.to} type="date" fault={form.formState.errors.to?.message}
              {...form.register("to", { validate: (to, { from }) => from === "" || to === "" || from <= to || auditExport.order })}
            />
          </Fields>
          <p className={trialStyles["muted"]}>{auditExport.zone}</p>
          <TrialResult data={result} error={error}>
            {busy && progress !== undefined && <p className={trialStyles["muted"]}>{auditExport.progress(progress)}</p>}
            {result !== undefined && <p>{resultText(result)}</p>}
          </TrialResult>
          <DialogActions>
            {busy ? <Button onClick={stop}>{auditExport.stop}</Button> : <Button onClick={close}>{texts.close}</Button>}
            <Button look="primary" type="submit" busy={busy}>{auditExport.run}</Button>
          </DialogActions>
        </form>
      </Dialog>
    </>
  );
}

/** The period from the beginning of the first day until the end of the last, in the viewer's time zone. */
function periodOf(from: string, to: string): AuditFilters {
  const period: AuditFilters = {};
  if (from !== "") period.from = new Date(`${from}T00:00`).toISOString();
  if (to !== "") {
    const end = new Date(`${to}T00:00`);
    end.setDate(end.getDate() + 1);
    period.to = end.toISOString();
  }
  return period;
}

function resultText({ events, isCut }: Exported): ReactNode {
  const auditExport = auditExportTexts;
  const last = events.at(-1);
  if (last === undefined) return auditExport.none;
  return isCut ? <>{auditExport.full(events.length)} <Time at={last.timestamp} />. {auditExport.fullHint}</> : auditExport.done(events.length);
}
