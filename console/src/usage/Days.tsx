import { DayColumns, dayName } from "../parts/DayColumns";
import { dollars, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { texts } from "../texts";
import type { UsageDay } from "./api";
import styles from "./Days.module.css";

/** Requests of each day. */
export function Days({ days, zone }: { days: UsageDay[]; zone: string }) {
  return (
    <Panel title={texts.usage.days} actions={<span className={styles["zone"]}>{texts.usage.zone(zone)}</span>}>
      <DayColumns
        label={texts.usage.days}
        days={days.map((day) => ({
          day: day.day, value: day.requests, text: texts.usage.dayOf(dayName(day.day), wholeNumber(day.requests), dollars(day.cost_usd)),
        }))}
      />
    </Panel>
  );
}
