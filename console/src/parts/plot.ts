/** Draws charts on a canvas. This module imports uPlot, so import it only when a chart is shown. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface PlottedSeries {
  color: string;
  values: number[];
}

export interface Plotted {
  /** The start of each hour or day, in seconds since 1970. */
  times: number[];
  step: "hour" | "day";
  /** A single series is drawn as columns, several series as lines. */
  series: PlottedSeries[];
  /** Whether values are whole numbers. */
  isCount: boolean;
  textColor: string;
  lineColor: string;
  font: string;
  timeText: (seconds: number) => string;
  valueText: (value: number) => string;
  /** Called with the index of the value under the pointer, or with null. */
  onHover: (at: number | null) => void;
}

const STEP_SECONDS = { hour: 3600, day: 86_400 };
const TICK_STEPS = { hour: [1, 3, 6], day: [1, 2, 7, 14] };
const COUNT_TICKS = [1, 2, 5].flatMap((base) => Array.from({ length: 12 }, (_, power) => base * 10 ** power)).sort((a, b) => a - b);
const MAX_COLUMN_PIXELS = 36;
const HEADROOM = 1.1;
/** The minimum width of the value labels, the width of a character in them, the height of the time labels, and the
 * minimum distance of ticks. */
const LABEL_PIXELS = 58;
const CHARACTER_PIXELS = 7;
const TIME_PIXELS = 26;
const TICK_PIXELS = 64;

/** Draws a chart that fills the element `place`. */
export function plot(place: HTMLElement, data: Plotted): { resize: () => void; destroy: () => void } {
  const { times, step, series, isCount, textColor, lineColor, font } = data;
  const half = STEP_SECONDS[step] / 2;
  const axis: uPlot.Axis = { stroke: textColor, font, grid: { stroke: lineColor, width: 1 }, ticks: { show: false } };
  const size = () => ({ width: place.clientWidth, height: place.clientHeight });
  const chart = new uPlot(
    {
      ...size(),
      legend: { show: false },
      padding: [8, 8, 0, 0],
      cursor: { drag: { x: false, y: false }, y: false },
      // Days are in UTC, hours in local time.
      tzDate: (seconds) => (step === "day" ? uPlot.tzDate(new Date(seconds * 1000), "UTC") : new Date(seconds * 1000)),
      scales: {
        x: { range: (_, from, to) => [from - half, to + half] },
        y: { range: (_, __, most) => [0, most > 0 ? most * HEADROOM : 1] },
      },
      axes: [
        {
          ...axis, size: TIME_PIXELS, grid: { show: false }, space: TICK_PIXELS, incrs: TICK_STEPS[step].map((count) => count * STEP_SECONDS[step]),
          values: (_, splits) => splits.map(data.timeText),
        },
        {
          ...axis, size: labelWidth, ...(isCount && { incrs: COUNT_TICKS }),
          values: (_, splits) => splits.map(data.valueText),
        },
      ],
      series: [{}, ...series.map(({ color }) => (series.length === 1 ? columns(color) : line(color)))],
      hooks: { setCursor: [({ cursor }) => data.onHover(cursor.idx ?? null)] },
    },
    [times, ...series.map(({ values }) => values)],
    place,
  );
  return { resize: () => chart.setSize(size()), destroy: () => chart.destroy() };
}

/** Returns the width of an axis that shows the longest label. uPlot has no labels yet when it asks for the first time. */
function labelWidth(_: uPlot, labels: string[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(LABEL_PIXELS, (longest + 2) * CHARACTER_PIXELS);
}

function line(color: string): uPlot.Series {
  return { stroke: color, width: 2, points: { size: 5, fill: color } };
}

function columns(color: string): uPlot.Series {
  const paths = uPlot.paths.bars?.({ size: [0.7, MAX_COLUMN_PIXELS], radius: 0.15 });
  return { fill: color, width: 0, points: { show: false }, ...(paths && { paths }) };
}
