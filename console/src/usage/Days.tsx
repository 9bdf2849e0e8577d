import { count, dollars } from "../parts/format";
import { TimeChart } from "../parts/TimeChart";
import { usageTexts } from "../texts/usage";
import type { UsageDay } from "./api";
import styles from "./UsagePage.module.css";

/** Requests and cost of each day. */
export function Days({ days, zone }: { days: UsageDay[]; zone: string }) {
  const usage = usageTexts;
  const axis = { starts: days.map(({ day }) => day), step: "day" } as const;
  return (
    <div className={styles["charts"]}>
      <TimeChart
        {...axis} title={usage.days} note={usage.zone(zone)} isCount valueText={count}
        series={[
          { name: usage.requests, tone: "accent", values: days.map(({ requests }) => requests) },
          { name: usage.redacted, tone: "info", values: days.map(({ redacted }) => redacted) },
          { name: usage.refused, tone: "danger", values: days.map(({ refused }) => refused) },
        ]}
      />
      <TimeChart
        {...axis} title={usage.costDays} isCount={false} valueText={dollars}
        series={[{ name: usage.cost, tone: "accent", values: days.map(({ cost_usd: cost }) => cost) }]}
      />
    </div>
  );
}
