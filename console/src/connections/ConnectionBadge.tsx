import { Badge, type Tone } from "../parts/Badge";
import { connectionTexts } from "../texts/connections";
import type { ConnectionStatus } from "./api";

const TONES: Record<ConnectionStatus, Tone> = { connected: "success", ended: "warning", not_connected: "neutral" };

export function ConnectionBadge({ status }: { status: ConnectionStatus }) {
  return <Badge tone={TONES[status]}>{connectionTexts.statuses[status]}</Badge>;
}
