import { Badge, type Tone } from "../parts/Badge";
import { connectionTexts } from "../texts/connections";
import type { ConnectionStatus } from "./api";

const TONES: Record<ConnectionStatus, Tone> = { connected: "success", ended: "warning", not_connected: "neutral" };

/** The state of a connection, and whether its server cannot be used at present. */
export function ConnectionBadge({ status, available = true }: { status: ConnectionStatus; available?: boolean }) {
  return (
    <>
      <Badge tone={TONES[status]}>{connectionTexts.statuses[status]}</Badge>
      {!available && <> <Badge>{connectionTexts.unavailable}</Badge></>}
    </>
  );
}
