import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Panel } from "../parts/Page";
import { count, dollars, duration, percent } from "../parts/format";
import { ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { type Analytics, type AnalyticsPeriod, useMetrics, useUsageSeries } from "./api";
import styles from "./Figures.module.css";

/** The figures at the top of the page: some of the selected period, some of the last hour. */
export function Figures({ analytics, period, when }: {
  analytics: UseQueryResult<Analytics>;
  period: AnalyticsPeriod;
  /** The name of the period. */
  when: string;
}) {
  const metrics = useMetrics();
  const series = useUsageSeries(period);
  const { overview } = texts;
  if (analytics.error && analytics.data === undefined) {
    return <Panel label={overview.requests}><ErrorState error={analytics.error} onRetry={() => void analytics.refetch()} /></Panel>;
  }
  const { data } = analytics;
  const hour = metrics.data;
  const points = series.isPlaceholderData ? undefined : series.data?.points;
  const sum = (name: "blocked" | "dlp_triggers") => points && count(points.reduce((total, point) => total + point[name], 0));
  return (
    <FigureRow>
      <Figure name={overview.requests} when={when} value={data && count(data.total_requests)} />
      <Figure
        name={overview.spend} when={when} value={data && dollars(data.total_cost_usd)}
        detail={data && data.total_requests > 0 && overview.perRequest(dollars(data.avg_cost_per_request_usd))}
      />
      <Figure name={overview.blocked} when={when} value={series.error && points === undefined ? texts.none : sum("blocked")} detail={overview.blockedHint} />
      <Figure name={overview.dlpActed} when={when} value={series.error && points === undefined ? texts.none : sum("dlp_triggers")} detail={overview.dlpActedHint} />
      <Figure
        name={overview.succeeded} when={overview.lastHour}
        value={hour && (hour.requests.total === 0 ? texts.none : percent(hour.requests.success / hour.requests.total))}
        detail={hour && (hour.requests.total === 0 ? overview.noTraffic : overview.failed(count(hour.requests.error)))}
      />
      <Figure
        name={overview.latency} when={overview.lastHour} value={hour && duration(hour.latency.p95_ms)}
        detail={hour && hour.latency.p50_ms !== null && overview.latencyHint(duration(hour.latency.p50_ms), duration(hour.latency.p99_ms))}
      />
    </FigureRow>
  );
}

export function FigureRow({ children }: { children: ReactNode }) {
  return <div className={styles["figures"]}>{children}</div>;
}

/** One figure. It shows a placeholder while `value` is undefined. */
export function Figure({ name, when, value, detail }: { name: string; when: string; value: string | undefined; detail?: ReactNode }) {
  return (
    <section className={styles["figure"]} aria-label={name}>
      <h2 className={styles["name"]}>{name} <span className={styles["when"]}>{when}</span></h2>
      <p className={styles["value"]}>{value ?? <Skeleton width="4rem" />}</p>
      <p className={styles["detail"]}>{detail || " "}</p>
    </section>
  );
}
