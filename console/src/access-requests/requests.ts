/** Texts about what an access request asks for and what its approval granted. */
import type { Tone } from "../parts/Badge";
import { dollars, wholeNumber } from "../parts/format";
import { accessRequestTexts } from "../texts/access-requests";
import type { AccessRequest, AccessStatus } from "./api";

export const TONES: Record<AccessStatus, Tone> = { pending: "warning", approved: "success", denied: "danger", withdrawn: "neutral" };

/** Returns the requested model, or the requested limits with their period. */
export function subjectOf(request: AccessRequest): string {
  return request.model ?? accessRequestTexts.limitOf(limitsText(request), request.period ?? "month");
}

/** Returns the group or the limits that the approval granted, or null if nothing is granted. */
export function grantedText({ granted }: AccessRequest): string | null {
  if (granted === null) return null;
  return granted.group_name === null ? limitsText(granted) : accessRequestTexts.memberOf(granted.group_name);
}

function limitsText({ limit_usd, limit_requests, limit_tokens }: Pick<AccessRequest, "limit_usd" | "limit_requests" | "limit_tokens">): string {
  const accessRequests = accessRequestTexts;
  return [
    limit_usd === null ? null : dollars(limit_usd),
    limit_requests === null ? null : accessRequests.requests(wholeNumber(limit_requests)),
    limit_tokens === null ? null : accessRequests.tokens(wholeNumber(limit_tokens)),
  ].filter((text) => text !== null).join(", ");
}
