import type { ReactNode } from "react";
import { useUserName } from "../api/users";
import styles from "../approvals/ApprovalCard.module.css";
import { Fact } from "../approvals/Decision";
import { Badge } from "../parts/Badge";
import { Time } from "../parts/Time";
import { accessRequestTexts } from "../texts/access-requests";
import { approvalTexts } from "../texts/approvals";
import type { AccessRequest } from "./api";
import { grantedText, subjectOf, TONES } from "./requests";

/** A card that shows an access request and its decision. If `own` is true, the request belongs to the signed-in user,
 * and the card omits the user's name. `children` contains the action buttons. */
export function AccessCard({ request, own = false, children }: { request: AccessRequest; own?: boolean; children: ReactNode }) {
  const approvals = approvalTexts;
  const accessRequests = accessRequestTexts;
  const person = useUserName(request.user_id);
  const granted = grantedText(request);
  return (
    <li className={styles["card"]}>
      <div className={styles["head"]}>
        <h2 className={styles["title"]}>{subjectOf(request)}</h2>
        <Badge tone={TONES[request.status]}>{accessRequests.statuses[request.status]}</Badge>
      </div>
      <p className={styles["text"]}>{request.reason}</p>
      <dl className={styles["facts"]}>
        {!own && <Fact name={accessRequests.person}>{person}</Fact>}
        <Fact name={accessRequests.kind}>{accessRequests.kinds[request.kind]}</Fact>
        <Fact name={accessRequests.created}><Time at={request.created_at} as="relative" /></Fact>
        {request.decided_at !== null && <Fact name={approvals.decided}><Time at={request.decided_at} as="relative" /></Fact>}
        {request.decision_reason !== null && <Fact name={approvals.decisionReason}>{request.decision_reason}</Fact>}
        {granted !== null && <Fact name={accessRequests.granted}>{granted}</Fact>}
      </dl>
      {children}
    </li>
  );
}
