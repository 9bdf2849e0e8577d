import { getRouteApi, Link } from "@tanstack/react-router";
import { ExternalLink, LogIn } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { useRights } from "../api/queries";
import { useIfMatch } from "../api/versions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Dialog, DialogActions } from "../parts/Dialog";
import { MenuItem } from "../parts/Menu";
import { Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { Secret } from "../parts/Secret";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { organizationTexts } from "../texts/organization";
import { signInTexts } from "../texts/sign-in";
import { type Idp, signInUrl, useCreateIdp, useDeleteIdp, useIdps, useSetIdpActive, useUpdateIdp } from "./api";
import { IdpDetails } from "./IdpDetails";
import { bodyOf, IdpForm } from "./IdpForm";
import styles from "./SignInPage.module.css";

const route = getRouteApi("/sign-in");
const WARNING_DAYS = 30;
const DAY_MS = 86_400_000;
const creation: Editor = (close) => <NewIdpForm onDone={close} />;

/** The identity providers of single sign-on. */
export function IdentityProviders() {
  const signIn = signInTexts;
  const { administers } = useRights();
  const { data, error, refetch } = useIdps();
  const { provider: openId } = route.useSearch();
  const navigate = route.useNavigate();
  const open = useCallback((idp: Idp) => void navigate({ search: { provider: idp.id } }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  return (
    <Panel
      title={signIn.providers}
      actions={administers && <NewRuleButton look="plain" size="small" label={signIn.newProvider} title={signIn.newProviderTitle} editor={creation} />}
    >
      {error && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data?.length === 0 ? (
        <EmptyState icon={LogIn} title={signIn.noProviders} text={signIn.noProvidersText} />
      ) : (
        <DataTable label={signIn.providers} columns={columns} rows={data} rowId={(idp) => idp.id} selectedId={openId} onOpen={open} />
      )}
      <IdpDetails idp={data?.find(({ id }) => id === openId)} onClose={() => void navigate({ search: {} })} />
      <p className={styles["text"]}>{signIn.domainsText} <Link to="/organization">{organizationTexts.title}</Link></p>
    </Panel>
  );
}

function columnsOf(administers: boolean, open: (idp: Idp) => void): Column<Idp>[] {
  const { rules } = texts;
  const signIn = signInTexts;
  const columns: Column<Idp>[] = [
    { id: "name", header: rules.name, meta: { width: "50%" }, cell: ({ row: { original: idp } }) => <Name idp={idp} onOpen={() => open(idp)} /> },
    {
      id: "certificates", header: signIn.certificate, meta: { hideBelow: "tablet" },
      cell: ({ row }) => (
        <span className={styles["certificates"]}>
          {row.original.certificates.map((certificate) => <Certificate key={certificate.sha256} {...certificate} />)}
        </span>
      ),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.is_active} /> },
  ];
  if (administers) columns.push(actionsColumn((idp) => <Actions idp={idp} />));
  return columns;
}

function Name({ idp: { id, name, entity_id: entity }, onOpen }: { idp: Idp; onOpen: () => void }) {
  return <RuleName name={name} detail={entity} opener={{ id, label: signInTexts.detailsOf(name), onOpen }} />;
}

function Certificate({ expires_at: expiresAt, sha256 }: Idp["certificates"][number]) {
  const signIn = signInTexts;
  const daysLeft = (new Date(expiresAt).getTime() - Date.now()) / DAY_MS;
  return (
    <span title={signIn.fingerprint(sha256)}>
      <Badge tone={daysLeft < 0 ? "danger" : daysLeft < WARNING_DAYS ? "warning" : "neutral"}>
        {daysLeft < 0 ? signIn.expired : signIn.expires} <Time at={expiresAt} as="date" />
      </Badge>
    </span>
  );
}

function NewIdpForm({ onDone }: { onDone: () => void }) {
  const create = useCreateIdp();
  return (
    <IdpForm
      onCancel={onDone}
      onSubmit={async (fields) => {
        await create.mutateAsync({ ...bodyOf(fields), is_active: true });
        toast(texts.rules.created(fields.name));
        onDone();
      }}
    />
  );
}

function ChangedIdpForm({ idp, onDone }: { idp: Idp; onDone: () => void }) {
  const update = useUpdateIdp(idp.id, useIfMatch(idp));
  return (
    <IdpForm
      idp={idp} onCancel={onDone}
      onSubmit={async (fields) => {
        await update.mutateAsync(bodyOf(fields));
        toast(texts.rules.saved(fields.name));
        onDone();
      }}
    />
  );
}

function Actions({ idp }: { idp: Idp }) {
  const signIn = signInTexts;
  const [testing, setTesting] = useState(false);
  const setActive = useSetIdpActive(idp.id);
  const remove = useDeleteIdp(idp.id);
  const close = () => setTesting(false);
  return (
    <>
      <RuleMenu
        name={idp.name} enabled={idp.is_active} deleteText={signIn.deleteText}
        onToggle={() => setActive.mutateAsync(!idp.is_active)} onDelete={() => remove.mutateAsync(undefined)}
        editor={(done) => <ChangedIdpForm idp={idp} onDone={done} />}
      >
        <MenuItem onClick={() => setTesting(true)}><ExternalLink aria-hidden size={15} />{signIn.test}</MenuItem>
      </RuleMenu>
      <Dialog open={testing} onClose={close} title={signIn.testTitle(idp.name)} text={idp.is_active ? signIn.testText : signIn.testDisabled}>
        <Secret label={signIn.signInUrl} text={signInUrl(idp.id)} />
        <DialogActions><Button look="primary" onClick={close}>{texts.done}</Button></DialogActions>
      </Dialog>
    </>
  );
}
