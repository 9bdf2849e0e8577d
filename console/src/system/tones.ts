import type { Tone } from "../parts/Badge";
import type { Finding, Status } from "./api";

export const STATUS_TONES: Record<Status, Tone> = { healthy: "success", degraded: "warning", unhealthy: "danger", unknown: "neutral" };
export const VERDICT_TONES: Record<Finding["verdict"], Tone> = { ok: "success", warn: "warning", fail: "danger" };
