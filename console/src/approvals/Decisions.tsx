import type { UseFormReturn } from "react-hook-form";
import { type AccessRequest, useApproveRequest, useDenyRequest } from "../access-requests/api";
import { subjectOf } from "../access-requests/requests";
import { useRights, useSession } from "../api/queries";
import { LimitFields, limitsOf } from "../budgets/LimitFields";
import { useAllowingGroups, useGroupNames } from "../groups/api";
import { SearchedSelectField } from "../parts/SearchedSelect";
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

/** Selects the group that the user is added to: the model's own group, or another group that allows the model. */
function GroupField({ form, model }: { form: UseFormReturn<DecisionFields>; model: string }) {
  const accessRequests = accessRequestTexts;
  const ownName = accessRequests.ownGroup(model);
  const chosen = form.watch("group_id");
  const names = useGroupNames(chosen === "" ? [] : [chosen]);
  function useOthers(search: string | undefined) {
    const allowing = useAllowingGroups(model, search);
    const rows = allowing?.rows.filter(({ name }) => name !== ownName);
    return allowing && rows && { rows, total: allowing.total - allowing.rows.length + rows.length };
  }
  return (
    <SearchedSelectField
      label={accessRequests.group} hint={accessRequests.groupHint} autoFocus fault={form.formState.errors.group_id?.message}
      value={chosen} onChange={(id) => form.setValue("group_id", id, { shouldDirty: true })} useOptions={useOthers}
      chosen={chosen === "" ? undefined : { id: chosen, name: names.get(chosen) ?? chosen }}
    >
      <option value="">{ownName}</option>
    </SearchedSelectField>
  );
}
