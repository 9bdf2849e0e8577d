import styles from "./DayColumns.module.css";

// A day is a date without a time zone, which JavaScript parses as midnight UTC. In time zones west of UTC, local time
// would show the day before.
const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });

export function dayName(day: string): string {
  return DAY.format(new Date(day));
}

/** A chart with a column for each day, the newest at the right. `text` is the label of a day. */
export function DayColumns({ label, days }: { label: string; days: readonly { day: string; value: number; text: string }[] }) {
  const highest = Math.max(...days.map(({ value }) => value), 1);
  const first = days[0];
  const last = days[days.length - 1];
  return (
    <>
      <ol className={styles["columns"]} aria-label={label}>
        {days.map(({ day, value, text }) => (
          <li key={day} className={styles["column"]} title={text}>
            <span className={styles["bar"]} data-none={value === 0 || undefined} style={{ height: `${(value / highest) * 100}%` }} />
            <span className={styles["hidden"]}>{text}</span>
          </li>
        ))}
      </ol>
      <div className={styles["axis"]} aria-hidden>
        <span>{first && dayName(first.day)}</span>
        <span>{last && dayName(last.day)}</span>
      </div>
    </>
  );
}
