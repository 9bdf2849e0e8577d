import type { Tone } from "../parts/Badge";
import type { Evaluation } from "./api";

export const TONES: Record<Evaluation["final_action"], Tone> = {
  allow: "success", log_only: "neutral", redact: "info", prompt: "warning", block: "danger",
};
