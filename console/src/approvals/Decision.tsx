import { Check, X } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { type UseFormReturn, useForm } from "react-hook-form";
import { type LimitValues, limitTexts } from "../budgets/LimitFields";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextAreaField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { approvalTexts } from "../texts/approvals";
import styles from "./ApprovalCard.module.css";

/** The fields of a decision by an administrator. Empty values are not sent. */
export interface DecisionFields extends LimitValues {
  reason: string;
  group_id: string;
}

type Limits = Parameters<typeof limitTexts>[0];

/** A button that approves or denies, and its dialog. `children` renders additional fields. `limits` contains the
 * initial values of limit fields among them. */
export function Decision({ approve, title, text, done, decide, limits, children }: {
  approve: boolean;
  title: string;
  text: string;
  done: string;
  decide: (fields: DecisionFields) => Promise<unknown>;
  limits?: Limits;
  children?: (form: UseFormReturn<DecisionFields>) => ReactNode;
}) {
  const approvals = approvalTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} look={approve ? "primary" : "plain"} onClick={() => setOpen(true)}>
        {approve ? <Check aria-hidden /> : <X aria-hidden />}{approve ? approvals.approve : approvals.deny}
      </Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={title} text={text}>
        <DecisionForm
          approve={approve} limits={limits} onCancel={close}
          onSubmit={async (fields) => {
            await decide(fields);
            toast(done);
            close();
          }}
        >
          {children}
        </DecisionForm>
      </Dialog>
    </>
  );
}

function DecisionForm({ approve, limits, onSubmit, onCancel, children }: {
  approve: boolean;
  limits: Limits;
  onSubmit: (fields: DecisionFields) => Promise<unknown>;
  onCancel: () => void;
  children: ((form: UseFormReturn<DecisionFields>) => ReactNode) | undefined;
}) {
  const approvals = approvalTexts;
  const form = useForm<DecisionFields>({ defaultValues: { reason: "", group_id: "", ...limitTexts(limits) } });
  return (
    <DialogForm
      form={form} action={approve ? approvals.approve : approvals.deny} look={approve ? "primary" : "danger"} onCancel={onCancel}
      onSubmit={({ reason, ...fields }) => onSubmit({ ...fields, reason: reason.trim() })}
    >
      {children?.(form)}
      <TextAreaField
        label={approvals.yourReason} hint={approvals.yourReasonHint} autoFocus={children === undefined} maxLength={1000} rows={3}
        fault={form.formState.errors.reason?.message} {...form.register("reason")}
      />
    </DialogForm>
  );
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div className={styles["fact"]}><dt>{name}</dt><dd>{children}</dd></div>;
}
