import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { texts } from "../texts";
import { utc } from "./format";
import { Panel } from "./Page";
import styles from "./TimeChart.module.css";
import { useTheme } from "./theme";

export interface ChartSeries {
  name: string;
  tone: "accent" | "info" | "danger";
  values: number[];
}

const DARK = matchMedia("(prefers-color-scheme: dark)");
const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const HOUR_UTC = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" });
const TIMES = { hour: HOUR, day: DAY };

/** Shows values by hour or by day, as a chart and as a table. `starts` contains the start of each hour, or each day. */
export function TimeChart({ title, note, starts, step, series, isCount, valueText }: {
  title: string;
  note?: string;
  starts: string[];
  step: "hour" | "day";
  series: ChartSeries[];
  isCount: boolean;
  valueText: (value: number) => string;
}) {
  const [hovered, setHovered] = useState<number | null>(null);
  const timeText = (at: number) => TIMES[step].format(new Date(starts[at] ?? 0));
  const shown = hovered !== null && hovered < starts.length ? hovered : null;
  return (
    <Panel title={title} actions={note !== undefined && <span className={styles["note"]}>{note}</span>}>
      <div className={styles["body"]}>
        <dl className={styles["legend"]} aria-hidden>
          <div className={styles["when"]}>{shown === null ? texts.chart.inAll : legendText(starts[shown] ?? "", step)}</div>
          {series.map(({ name, tone, values }) => (
            <div key={name} className={styles["entry"]}>
              <dt><span className={styles[tone]} />{name}</dt>
              <dd>{valueText(shown === null ? sum(values) : (values[shown] ?? 0))}</dd>
            </div>
          ))}
        </dl>
        <Canvas
          label={summaryOf(series, timeText, valueText)} starts={starts} step={step} series={series} isCount={isCount}
          valueText={valueText} onHover={setHovered}
        />
        <Table title={title} series={series} starts={starts} timeText={timeText} valueText={valueText} />
      </div>
    </Panel>
  );
}

function Canvas({ label, starts, step, series, isCount, valueText, onHover }: {
  label: string;
  starts: string[];
  step: "hour" | "day";
  series: ChartSeries[];
  isCount: boolean;
  valueText: (value: number) => string;
  onHover: (at: number | null) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const colors = useRef<HTMLSpanElement>(null);
  const [theme] = useTheme();
  const isDark = useSyncExternalStore(onDarkChange, () => DARK.matches);
  // Compare the values, so that a new array with the same values does not redraw the chart.
  const data = JSON.stringify([starts, series]);
  useEffect(() => {
    let chart: { resize: () => void; destroy: () => void } | undefined;
    let isLeft = false;
    const observer = new ResizeObserver(() => chart?.resize());
    void import("./plot").then(({ plot }) => {
      if (isLeft || place.current === null || colors.current === null) return;
      const { color, font, borderTopColor } = getComputedStyle(place.current);
      // A CSS variable with `light-dark()` is resolved only in a property of an element, so read the colors from hidden
      // elements.
      const resolved = [...colors.current.children].map((swatch) => getComputedStyle(swatch).color);
      chart = plot(place.current, {
        times: starts.map((start) => Date.parse(start) / 1000),
        step, isCount, valueText, onHover, font, textColor: color, lineColor: borderTopColor,
        series: series.map(({ values }, at) => ({ values, color: resolved[at] ?? color })),
        timeText: (seconds) => TIMES[step].format(new Date(seconds * 1000)),
      });
      observer.observe(place.current);
    });
    return () => {
      isLeft = true;
      observer.disconnect();
      chart?.destroy();
    };
  }, [data, step, theme, isDark]);
  return (
    <>
      <span ref={colors} hidden>{series.map(({ name, tone }) => <span key={name} className={styles[tone]} />)}</span>
      <div ref={place} role="img" aria-label={label} className={styles["canvas"]} />
    </>
  );
}

/** Returns the start of a day, which is a day in UTC, or of an hour, with UTC if the viewer's time differs. */
function legendText(start: string, step: "hour" | "day"): string {
  const moment = new Date(start);
  const shown = TIMES[step].format(moment);
  const inUtc = HOUR_UTC.format(moment);
  return step === "day" || shown === inUtc ? shown : `${shown} (${texts.utc(inUtc)})`;
}

function Table({ title, series, starts, timeText, valueText }: {
  title: string;
  series: ChartSeries[];
  starts: string[];
  timeText: (at: number) => string;
  valueText: (value: number) => string;
}) {
  const { chart } = texts;
  return (
    <details className={styles["details"]}>
      <summary>{chart.table}</summary>
      <div className={styles["scroll"]} tabIndex={0} role="group" aria-label={chart.tableOf(title)}>
        <table aria-label={title}>
          <thead>
            <tr><th scope="col">{chart.time}</th>{series.map(({ name }) => <th key={name} scope="col">{name}</th>)}</tr>
          </thead>
          <tbody>
            {starts.map((start, at) => (
              <tr key={at}>
                <th scope="row"><time dateTime={start} title={utc(start)}>{timeText(at)}</time></th>
                {series.map(({ name, values }) => <td key={name}>{valueText(values[at] ?? 0)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Returns a sentence for each series, with its sum and its highest value. */
function summaryOf(series: ChartSeries[], timeText: (at: number) => string, valueText: (value: number) => string): string {
  return series.map(({ name, values }) => {
    const most = Math.max(...values, 0);
    const when = timeText(Math.max(values.indexOf(most), 0));
    return texts.chart.summary(name, valueText(sum(values)), timeText(0), timeText(values.length - 1), valueText(most), when);
  }).join(" ");
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function onDarkChange(listener: () => void): () => void {
  DARK.addEventListener("change", listener);
  return () => DARK.removeEventListener("change", listener);
}
