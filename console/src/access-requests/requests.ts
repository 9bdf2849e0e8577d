/** What a request asks for, and what it got, in words. */
import type { Tone } from "../parts/Badge";
import { dollars, wholeNumber } from "../parts/format";
import { texts } from "../texts";
import type { AccessRequest, AccessStatus } from "./api";

export const TONES: Record<AccessStatus, Tone> = { pending: "warning", approved: "success", denied: "danger", withdrawn: "neutral" };

/** The model, or the limits with their period. */
export function subjectOf(request: AccessRequest): string {
  return request.model ?? texts.accessRequests.limitOf(limitsText(request), request.period ?? "month");
}

/** The group or the limits that an approval gave. */
export function grantedText({ granted }: AccessRequest): string | null {
  if (granted === null) return null;
  return granted.group_name === null ? limitsText(granted) : texts.accessRequests.memberOf(granted.group_name);
}

function limitsText({ limit_usd, limit_requests, limit_tokens }: Pick<AccessRequest, "limit_usd" | "limit_requests" | "limit_tokens">): string {
  const { accessRequests } = texts;
  return [
    limit_usd === null ? null : dollars(limit_usd),
    limit_requests === null ? null : accessRequests.requests(wholeNumber(limit_requests)),
    limit_tokens === null ? null : accessRequests.tokens(wholeNumber(limit_tokens)),
  ].filter((text) => text !== null).join(", ");
}
