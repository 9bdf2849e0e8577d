import { count, dollars } from "../parts/format";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { TimeChart } from "../parts/TimeChart";
import { texts } from "../texts";
import { type AnalyticsPeriod, useUsageSeries } from "./api";
import styles from "./OverviewPage.module.css";

/** Requests and spend of the period over time. */
export function Series({ period }: { period: AnalyticsPeriod }) {
  const { overview } = texts;
  const series = useUsageSeries(period);
  if (series.error && series.data === undefined) {
    return <Panel label={overview.overTime}><ErrorState error={series.error} onRetry={() => void series.refetch()} /></Panel>;
  }
  if (series.data === undefined) return <Panel title={overview.overTime}><div className={styles["loading"]}><Skeleton width="60%" /></div></Panel>;
  const { points, step } = series.data;
  const axis = { starts: points.map(({ start }) => start), step };
  return (
    <div className={styles["charts"]}>
      <TimeChart
        {...axis} title={overview.overTime} isCount valueText={count}
        series={[
          { name: overview.requests, tone: "accent", values: points.map(({ requests }) => requests) },
          { name: overview.dlpActed, tone: "info", values: points.map(({ dlp_triggers: triggers }) => triggers) },
          { name: overview.blocked, tone: "danger", values: points.map(({ blocked }) => blocked) },
        ]}
      />
      <TimeChart
        {...axis} title={overview.spendOverTime} isCount={false} valueText={dollars}
        series={[{ name: overview.spend, tone: "accent", values: points.map(({ cost_usd: cost }) => cost) }]}
      />
    </div>
  );
}
