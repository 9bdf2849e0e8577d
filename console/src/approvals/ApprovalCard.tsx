import { Link } from "@tanstack/react-router";
import { useRights, useSession } from "../api/queries";
import { useUserName } from "../api/users";
import { useClientName } from "../budgets/scopes";
import { Badge, type Tone } from "../parts/Badge";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { approvalTexts } from "../texts/approvals";
import { type Approval, type ApprovalStatus, useDecision } from "./api";
import styles from "./ApprovalCard.module.css";
import { Decision, Fact } from "./Decision";

const TONES: Record<ApprovalStatus, Tone> = {
  pending: "warning", approved: "success", denied: "danger", expired: "neutral", cancelled: "neutral",
};

/** A card with the stored facts about a held request. The texts of the request are not shown anywhere. */
export function ApprovalCard({ approval }: { approval: Approval }) {
  const approvals = approvalTexts;
  const { administers } = useRights();
  const { user } = useSession();
  const decide = useDecision();
  const isOwn = approval.user_id === user.id;
  return (
    <li className={styles["card"]}>
      <div className={styles["head"]}>
        <h2 className={styles["title"]}>{approval.rule_name ?? approval.reason}</h2>
        <Badge tone={TONES[approval.status]}>{approvals.statuses[approval.status]}</Badge>
      </div>
      <p className={styles["text"]}>{approval.reason}</p>
      <dl className={styles["facts"]}>
        <Fact name={approvals.caller}><Caller approval={approval} /></Fact>
        <Fact name={approvals.direction}>{approvals.directions[approval.direction]}</Fact>
        {approval.entity_types.length > 0 && <Fact name={approvals.entities}>{approval.entity_types.join(", ")}</Fact>}
        <Fact name={approvals.model}>{approval.model ?? texts.none}</Fact>
        <Fact name={approvals.created}><Time at={approval.created_at} as="relative" /></Fact>
        {approval.status === "pending" && <Fact name={approvals.expires}><Time at={approval.expires_at} as="relative" /></Fact>}
        {approval.decided_at !== null && <Fact name={approvals.decided}><Time at={approval.decided_at} as="relative" /></Fact>}
        {approval.decision_reason !== null && <Fact name={approvals.decisionReason}>{approval.decision_reason}</Fact>}
        <Fact name={approvals.request}>
          {approval.status === "pending" ? <code>{approval.request_id}</code> : (
            // The request has a record as soon as it has ended.
            <Link to="/requests" search={{ period: "all", request: approval.request_id }}><code>{approval.request_id}</code></Link>
          )}
        </Fact>
      </dl>
      {administers && approval.status === "pending" && (
        <div className={styles["actions"]}>
          {isOwn ? <span className={styles["own"]}>{approvals.own}</span> : (
            <Decision
              approve title={approvals.approveTitle} text={approvals.approveText} done={approvals.approved}
              decide={({ reason }) => decide.mutateAsync({ id: approval.id, approve: true, reason: reason || null })}
            />
          )}
          <Decision
            approve={false} title={approvals.denyTitle} text={approvals.denyText} done={approvals.denied}
            decide={({ reason }) => decide.mutateAsync({ id: approval.id, approve: false, reason: reason || null })}
          />
        </div>
      )}
    </li>
  );
}

/** The user whose request is held, as a link to the user's requests, or the OAuth client. */
function Caller({ approval: { user_id: user, client_id: client } }: { approval: Approval }) {
  const name = useUserName(user);
  const clientName = useClientName(user === null ? client : null);
  if (user !== null) return <Link to="/requests" search={{ period: "all", user }}>{name}</Link>;
  return clientName ?? client ?? texts.none;
}
