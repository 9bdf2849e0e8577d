import type { UseFormReturn } from "react-hook-form";
import { useAccessRules } from "../access/api";
import { type AccessRequest, useApproveRequest, useDenyRequest } from "../access-requests/api";
import { grantedText, subjectOf, TONES } from "../access-requests/requests";
import { useRights, useSession } from "../api/queries";
import { useUserName } from "../api/users";
import { LimitFields, limitsOf } from "../budgets/LimitFields";
import { useGroups } from "../groups/api";
import { Badge } from "../parts/Badge";
import { SelectField } from "../parts/fields";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import styles from "./ApprovalCard.module.css";
import { Decision, type DecisionFields, Fact } from "./Decision";

/** One request for a model or a limit, with its decision. */
export function AccessCard({ request }: { request: AccessRequest }) {
  const { approvals, accessRequests } = texts;
  const { administers } = useRights();
  const { user } = useSession();
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
        <Fact name={accessRequests.person}>{person}</Fact>
        <Fact name={accessRequests.kind}>{accessRequests.kinds[request.kind]}</Fact>
        <Fact name={approvals.created}><Time at={request.created_at} as="relative" /></Fact>
        {request.decided_at !== null && <Fact name={approvals.decided}><Time at={request.decided_at} as="relative" /></Fact>}
        {request.decision_reason !== null && <Fact name={approvals.decisionReason}>{request.decision_reason}</Fact>}
        {granted !== null && <Fact name={accessRequests.granted}>{granted}</Fact>}
      </dl>
      {administers && request.status === "pending" && <Decisions request={request} isOwn={request.user_id === user.id} />}
    </li>
  );
}

function Decisions({ request, isOwn }: { request: AccessRequest; isOwn: boolean }) {
  const { approvals, accessRequests } = texts;
  const approve = useApproveRequest(request.id);
  const deny = useDenyRequest(request.id);
  const isModel = request.kind === "model";
  return (
    <div className={styles["actions"]}>
      {isOwn ? <span className={styles["own"]}>{approvals.own}</span> : (
        <Decision
          approve title={accessRequests.approveTitle(subjectOf(request))} done={approvals.approved} limits={isModel ? undefined : request}
          text={isModel ? accessRequests.approveModelText : accessRequests.approveLimitText}
          decide={({ reason, group_id, ...limits }) =>
            approve.mutateAsync({ reason: reason || null, ...(isModel ? { group_id: group_id || null } : limitsOf(limits)) })
          }
        >
          {(form) => (isModel
            ? <GroupField form={form} model={request.model ?? ""} />
            : <LimitFields register={form.register} errors={form.formState.errors} />)}
        </Decision>
      )}
      <Decision
        approve={false} title={approvals.denyTitle} text={accessRequests.denyText} done={approvals.denied}
        decide={({ reason }) => deny.mutateAsync(reason || null)}
      />
    </div>
  );
}

/** The group that the person joins: the model's own, or another that allows the model. */
function GroupField({ form, model }: { form: UseFormReturn<DecisionFields>; model: string }) {
  const { accessRequests } = texts;
  const groups = useGroups();
  const rules = useAccessRules();
  const allowing = new Set(rules.data?.filter((rule) => rule.model_id === model && rule.access_type === "ALLOW").map((rule) => rule.group_id));
  const ownName = accessRequests.ownGroup(model);
  // A directory would undo a membership in one of its groups.
  const choices = groups.data?.filter(({ id, name, external_group_id }) => allowing.has(id) && external_group_id === null && name !== ownName);
  return (
    <SelectField
      label={accessRequests.group} hint={accessRequests.groupHint} autoFocus fault={form.formState.errors.group_id?.message}
      {...form.register("group_id")}
    >
      <option value="">{ownName}</option>
      {choices?.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </SelectField>
  );
}
