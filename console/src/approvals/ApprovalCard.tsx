import { Link } from "@tanstack/react-router";
import { Check, X } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights, useSession } from "../api/queries";
import { useUserName } from "../api/users";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextAreaField } from "../parts/fields";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type Approval, type ApprovalStatus, useDecision } from "./api";
import styles from "./ApprovalCard.module.css";

const TONES: Record<ApprovalStatus, Tone> = {
  pending: "warning", approved: "success", denied: "danger", expired: "neutral", cancelled: "neutral",
};

/** One request with what is known of it. What was written is not shown anywhere. */
export function ApprovalCard({ approval }: { approval: Approval }) {
  const { approvals } = texts;
  const { administers } = useRights();
  const { user } = useSession();
  const caller = useUserName(approval.user_id);
  const isOwn = approval.user_id === user.id;
  return (
    <li className={styles["card"]}>
      <div className={styles["head"]}>
        <h2 className={styles["title"]}>{approval.rule_name ?? approval.reason}</h2>
        <Badge tone={TONES[approval.status]}>{approvals.statuses[approval.status]}</Badge>
      </div>
      <p className={styles["text"]}>{approval.reason}</p>
      <dl className={styles["facts"]}>
        <Fact name={approvals.caller}>{caller ?? approval.client_id ?? texts.none}</Fact>
        <Fact name={approvals.direction}>{approvals.directions[approval.direction]}</Fact>
        {approval.entity_types.length > 0 && <Fact name={approvals.entities}>{approval.entity_types.join(", ")}</Fact>}
        <Fact name={approvals.model}>{approval.model ?? texts.none}</Fact>
        <Fact name={approvals.created}><Time at={approval.created_at} as="relative" /></Fact>
        {approval.status === "pending" && <Fact name={approvals.expires}><Time at={approval.expires_at} as="relative" /></Fact>}
        {approval.decided_at !== null && <Fact name={approvals.decided}><Time at={approval.decided_at} as="relative" /></Fact>}
        {approval.decision_reason !== null && <Fact name={approvals.decisionReason}>{approval.decision_reason}</Fact>}
        <Fact name={approvals.request}>
          <Link to="/requests" search={{ period: "all", ...(approval.user_id === null ? {} : { user: approval.user_id }) }}>
            <code>{approval.request_id.slice(0, 13)}…</code>
          </Link>
        </Fact>
      </dl>
      {administers && approval.status === "pending" && (
        <div className={styles["actions"]}>
          {isOwn ? <span className={styles["own"]}>{approvals.own}</span> : <Decision approval={approval} approve />}
          <Decision approval={approval} approve={false} />
        </div>
      )}
    </li>
  );
}

function Decision({ approval, approve }: { approval: Approval; approve: boolean }) {
  const { approvals } = texts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const form = useForm({ defaultValues: { reason: "" } });
  const decide = useDecision();
  const close = () => setOpen(false);
  const action = approve ? approvals.approve : approvals.deny;
  return (
    <>
      <Button ref={trigger} look={approve ? "primary" : "plain"} onClick={() => setOpen(true)}>
        {approve ? <Check aria-hidden /> : <X aria-hidden />}{action}
      </Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} title={approve ? approvals.approveTitle : approvals.denyTitle}
        text={approve ? approvals.approveText : approvals.denyText}
      >
        <DialogForm
          form={form} action={action} look={approve ? "primary" : "danger"} onCancel={close}
          onSubmit={async ({ reason }) => {
            await decide.mutateAsync({ id: approval.id, approve, reason: reason.trim() || null });
            toast(approve ? approvals.approved : approvals.denied);
            close();
          }}
        >
          <TextAreaField
            label={approvals.yourReason} hint={approvals.yourReasonHint} autoFocus maxLength={1000} rows={3}
            fault={form.formState.errors.reason?.message} {...form.register("reason")}
          />
        </DialogForm>
      </Dialog>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div className={styles["fact"]}><dt>{name}</dt><dd>{children}</dd></div>;
}
