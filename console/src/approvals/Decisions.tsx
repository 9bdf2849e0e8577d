import type { UseFormReturn } from "react-hook-form";
import { useAccessRules } from "../access/api";
import { type AccessRequest, useApproveRequest, useDenyRequest } from "../access-requests/api";
import { subjectOf } from "../access-requests/requests";
import { useRights, useSession } from "../api/queries";
import { LimitFields, limitsOf } from "../budgets/LimitFields";
import { useGroupsById } from "../groups/api";
import { SelectField } from "../parts/fields";
import { accessRequestTexts } from "../texts/access-requests";
import { approvalTexts } from "../texts/approvals";
import styles from "./ApprovalCard.module.css";
import { Decision, type DecisionFields } from "./Decision";

/** The buttons with which administrators decide a pending access request. */
export function Decisions({ request }: { request: AccessRequest }) {
  const approvals = approvalTexts;
  const accessRequests = accessRequestTexts;
  const { administers } = useRights();
  const isOwn = useSession().user.id === request.user_id;
  const approve = useApproveRequest(request.id);
  const deny = useDenyRequest(request.id);
  const isModel = request.kind === "model";
  if (!administers || request.status !== "pending") return null;
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
            : <LimitFields register={form.register} errors={form.formState.errors} autoFocus />)}
        </Decision>
      )}
      <Decision
        approve={false} title={approvals.denyTitle} text={accessRequests.denyText} done={approvals.denied}
        decide={({ reason }) => deny.mutateAsync(reason || null)}
      />
    </div>
  );
}

/** The maximum number of groups that the field offers. */
const MAX_CHOICES = 50;

/** Selects the group that the user is added to: the model's own group, or another group that allows the model. */
function GroupField({ form, model }: { form: UseFormReturn<DecisionFields>; model: string }) {
  const accessRequests = accessRequestTexts;
  const rules = useAccessRules();
  const allowing = rules.data?.filter((rule) => rule.model_id === model && rule.access_type === "ALLOW").map((rule) => rule.group_id) ?? [];
  const groups = useGroupsById(allowing.slice(0, MAX_CHOICES));
  const ownName = accessRequests.ownGroup(model);
  // Groups from a directory are left out, because the directory would undo the membership.
  const choices = [...groups.values()].filter(({ name, external_group_id }) => external_group_id === null && name !== ownName);
  return (
    <SelectField
      label={accessRequests.group} hint={accessRequests.groupHint} autoFocus fault={form.formState.errors.group_id?.message}
      {...form.register("group_id")}
    >
      <option value="">{ownName}</option>
      {choices.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </SelectField>
  );
}
