/** Verification of the whole chain, part by part. */
import { api, dataOf, type Schemas } from "../api/client";
import { paced } from "../api/paced";

export type ChainPlace = Schemas["ChainPlace"];

export interface Verified {
  first: number;
  last: number;
  events: number;
  archivedUntil: number;
  newest: number;
  newestHash: string;
  breaks: ChainPlace[];
  breakCount: number;
  gaps: ChainPlace[];
}

/** The maximum number of breaks, and of gaps, in the result. */
const MAX_PLACES = 100;

/** Verifies the chain from its first event, or from the end of the archive, to its newest event. Calls `report` after
 * each part with the result so far. */
export async function verifyChain(report: (verified: Verified) => void, signal: AbortSignal): Promise<Verified> {
  let verified: Verified | undefined;
  let after: number | null = 0;
  do {
    const query: { after: number } = { after };
    const part: Schemas["AuditVerification"] = await paced(() => dataOf(api.GET("/v1/audit/verification", { params: { query }, signal })), signal);
    verified = {
      first: verified?.first ?? part.first_sequence,
      last: part.last_sequence,
      events: (verified?.events ?? 0) + part.events,
      archivedUntil: part.archived_until,
      newest: part.head_sequence,
      newestHash: part.head_hash,
      breaks: [...(verified?.breaks ?? []), ...part.breaks].slice(0, MAX_PLACES),
      breakCount: (verified?.breakCount ?? 0) + part.break_count,
      gaps: [...(verified?.gaps ?? []), ...part.gaps].slice(0, MAX_PLACES),
    };
    report(verified);
    after = part.next_after;
  } while (after !== null);
  return verified;
}
