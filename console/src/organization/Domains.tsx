import { Plus, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, TextField } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { Panel } from "../parts/Page";
import { RowMenu } from "../parts/RowMenu";
import { Secret } from "../parts/Secret";
import { report } from "../parts/report";
import { ErrorState, errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { organizationTexts } from "../texts/organization";
import { type Domain, useAddDomain, useDomains, useRemoveDomain, useUpdateDomain, useVerifyDomain } from "./api";
import styles from "./OrganizationPage.module.css";

/** The mail domains, with the DNS record that verifies each. */
export function Domains() {
  const organization = organizationTexts;
  const { administers } = useRights();
  const domains = useDomains();
  const [adding, setAdding] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const form = useForm({ defaultValues: { domain: "" } });
  const add = useAddDomain();
  const close = () => setAdding(false);
  return (
    <Panel
      title={organization.domains}
      actions={administers && <Button ref={opener} size="small" onClick={() => setAdding(true)}><Plus aria-hidden />{organization.addDomain}</Button>}
    >
      {domains.error && domains.data === undefined ? (
        <ErrorState error={domains.error} onRetry={() => void domains.refetch()} />
      ) : domains.data?.length === 0 ? (
        <p className={styles["text"]}>{organization.noDomains}</p>
      ) : (
        <ul className={styles["list"]}>{domains.data?.map((domain) => <DomainRow key={domain.domain} domain={domain} />)}</ul>
      )}
      <Dialog open={adding} onClose={close} returnTo={opener} title={organization.addDomain} text={organization.addDomainText}>
        <DialogForm
          form={form} action={organization.addDomain} onCancel={close}
          onSubmit={async ({ domain }) => {
            await add.mutateAsync(domain.trim());
            form.reset();
            close();
          }}
        >
          <TextField label={organization.domain} autoFocus autoComplete="off" spellCheck={false} fault={form.formState.errors.domain?.message} {...form.register("domain", { required: organization.required })} />
        </DialogForm>
      </Dialog>
    </Panel>
  );
}

function DomainRow({ domain }: { domain: Domain }) {
  const organization = organizationTexts;
  const { administers } = useRights();
  const [removing, setRemoving] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const verify = useVerifyDomain(domain.domain);
  const update = useUpdateDomain(domain.domain);
  const remove = useRemoveDomain(domain.domain);
  const change = (body: Parameters<typeof update.mutate>[0]) => update.mutate(body, { onError: (error) => toast(errorText(error), "failed") });
  return (
    <li className={styles["domain"]}>
      <div className={styles["row"]}>
        <span className={styles["names"]}><span className={styles["name"]}>{domain.domain}</span></span>
        <span className={styles["actions"]}>
          <Badge tone={domain.verified ? "success" : "warning"}>{domain.verified ? organization.verified : organization.notVerified}</Badge>
          {administers && (
            <RowMenu label={organization.actionsOf(domain.domain)} trigger={trigger}>
              <MenuItem danger onClick={() => setRemoving(true)}><Trash2 aria-hidden size={15} />{organization.remove}</MenuItem>
            </RowMenu>
          )}
        </span>
      </div>
      {!domain.verified && (
        <div className={styles["proof"]}>
          <p>{organization.proofText(domain.txt_record.name)}</p>
          <Secret label={organization.txtValue} text={domain.txt_record.value} />
          {administers && (
            <Button
              size="small" busy={verify.isPending}
              onClick={() => report(verify.mutateAsync(), ({ verified }) => toast(verified ? organization.isVerified(domain.domain) : organization.isNotVerified, verified ? "done" : "failed"))}
            >
              {organization.verify}
            </Button>
          )}
        </div>
      )}
      <div className={styles["proof"]}>
        <CheckboxField
          label={organization.jit} checked={domain.jit_provisioning} disabled={!administers}
          onChange={({ target }) => change({ jit_provisioning: target.checked })}
        />
        <CheckboxField
          label={organization.registration} checked={domain.self_registration} disabled={!administers}
          onChange={({ target }) => change({ self_registration: target.checked })}
        />
      </div>
      <ConfirmDialog
        open={removing} onClose={() => setRemoving(false)} returnTo={trigger} title={organization.removeTitle(domain.domain)}
        text={organization.removeText} action={organization.removeNow} run={() => remove.mutateAsync(undefined)}
        done={organization.removed(domain.domain)}
      />
    </li>
  );
}
