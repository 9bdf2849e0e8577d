import { Badge } from "../parts/Badge";
import { complianceTexts } from "../texts/compliance";
import type { Bundle } from "./api";

export function StateBadge({ bundle: { state, acknowledged_at: at } }: { bundle: Bundle }) {
  const { states } = complianceTexts;
  if (state === "archived") return <Badge>{states.archived}</Badge>;
  return at === null ? <Badge tone="warning">{states.active}</Badge> : <Badge tone="success">{states.acknowledged}</Badge>;
}
