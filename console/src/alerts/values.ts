/** Formats metrics and conditions for display. */
import { dollars, duration, wholeNumber } from "../parts/format";
import { alertTexts } from "../texts/alerts";
import type { AlertRule, Metric } from "./api";

/** A value of a metric, with its unit. */
export function valueOf(metric: Metric, value: number): string {
  if (metric === "cost") return dollars(value);
  if (metric === "error_rate") return `${Number(value.toFixed(2))}%`;
  if (metric === "latency_p95") return duration(value);
  return wholeNumber(value);
}

export function conditionOf(rule: AlertRule): string {
  const alerts = alertTexts;
  const value = valueOf(rule.metric_type, rule.threshold);
  return alerts.condition(alerts.metrics[rule.metric_type], alerts.signs[rule.comparison], value, rule.window_minutes);
}
