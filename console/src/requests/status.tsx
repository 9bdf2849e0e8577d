import { Badge, type Tone } from "../parts/Badge";
import { texts } from "../texts";

const STATUS_TONES: Record<string, Tone> = { success: "success", refused: "warning", error: "danger" };
const DLP_TONES: Record<string, Tone> = { redact: "info", block: "danger", prompt: "warning" };

export function StatusBadge({ status }: { status: string }) {
  return <Badge tone={STATUS_TONES[status] ?? "neutral"}>{texts.statusOf(status)}</Badge>;
}

/** The action of DLP on a request. Renders nothing if the request was allowed unchanged. */
export function DlpBadge({ action }: { action: string | null }) {
  const name = action?.toLowerCase();
  if (action === null || name === undefined || name === "allow") return null;
  return <Badge tone={DLP_TONES[name] ?? "neutral"}>{texts.dlpActionOf(action)}</Badge>;
}
