import { classes } from "./classes";
import fields from "./fields.module.css";
import { utc } from "./format";
import styles from "./TimeRange.module.css";

/** Two fields for the start and the end of a period, in the viewer's time zone and to the minute. An incomplete field
 * is treated as empty. */
export function TimeRange({ fromLabel, toLabel, from, to, onChange }: {
  fromLabel: string;
  toLabel: string;
  from: string | undefined;
  to: string | undefined;
  onChange: (range: { from: string | undefined; to: string | undefined }) => void;
}) {
  return (
    <span className={styles["range"]}>
      <Moment label={fromLabel} value={from} onChange={(moment) => onChange({ from: moment, to })} />
      <span aria-hidden>–</span>
      <Moment label={toLabel} value={to} onChange={(moment) => onChange({ from, to: moment })} />
    </span>
  );
}

function Moment({ label, value, onChange }: { label: string; value: string | undefined; onChange: (moment: string | undefined) => void }) {
  return (
    <input
      type="datetime-local" aria-label={label} title={value === undefined ? undefined : utc(value)} value={value === undefined ? "" : localTime(new Date(value))}
      className={classes(fields["input"], fields["compact"], styles["moment"], value !== undefined && styles["active"])}
      onChange={({ target }) => {
        const moment = new Date(target.value);
        onChange(Number.isNaN(moment.getTime()) ? undefined : moment.toISOString());
      }}
    />
  );
}

/** Returns a moment in the format of the field: local time without a time zone. */
function localTime(moment: Date): string {
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** Two fields for the first and the last day of a period, in UTC. Both days are included. */
export function DayRange({ fromLabel, toLabel, from, to, onChange }: {
  fromLabel: string;
  toLabel: string;
  from: string | undefined;
  to: string | undefined;
  onChange: (range: { from: string | undefined; to: string | undefined }) => void;
}) {
  const day = (label: string, value: string | undefined, apply: (day: string | undefined) => void) => (
    <input
      type="date" aria-label={label} value={value ?? ""} onChange={({ target }) => apply(target.value || undefined)}
      className={classes(fields["input"], fields["compact"], value !== undefined && styles["active"])}
    />
  );
  return (
    <span className={styles["range"]}>
      {day(fromLabel, from, (first) => onChange({ from: first, to }))}
      <span aria-hidden>–</span>
      {day(toLabel, to, (last) => onChange({ from, to: last }))}
    </span>
  );
}
