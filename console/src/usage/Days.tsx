import { dollars, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { texts } from "../texts";
import type { UsageDay } from "./api";
import styles from "./Days.module.css";

// A day is a date without a time zone, which would move it to the day before.
const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });

/** Requests of each day as columns, the newest at the right. */
export function Days({ days, zone }: { days: UsageDay[]; zone: string }) {
  const most = Math.max(...days.map((day) => day.requests), 1);
  const first = days[0];
  const last = days[days.length - 1];
  return (
    <Panel title={texts.usage.days} actions={<span className={styles["zone"]}>{texts.usage.zone(zone)}</span>}>
      <ol className={styles["columns"]} aria-label={texts.usage.days}>
        {days.map((day) => (
          <li key={day.day} className={styles["column"]} title={dayText(day)}>
            <span className={styles["bar"]} data-none={day.requests === 0 || undefined} style={{ height: `${(day.requests / most) * 100}%` }} />
            <span className={styles["hidden"]}>{dayText(day)}</span>
          </li>
        ))}
      </ol>
      <div className={styles["axis"]} aria-hidden>
        <span>{first && DAY.format(new Date(first.day))}</span>
        <span>{last && DAY.format(new Date(last.day))}</span>
      </div>
    </Panel>
  );
}

function dayText({ day, requests, cost_usd: cost }: UsageDay): string {
  return texts.usage.dayOf(DAY.format(new Date(day)), wholeNumber(requests), dollars(cost));
}
