import { Link, useNavigate } from "@tanstack/react-router";
import { Check, CircleCheck, KeyRound, Plug, Plus, Send } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useRights, useSession } from "../api/queries";
import { type CreatedKey, useCreateKey } from "../keys/api";
import { programs } from "../keys/programs";
import { useExampleModel } from "../models/usable";
import { Button, buttonClass } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { Dialog } from "../parts/Dialog";
import { Page, Panel } from "../parts/Page";
import { Secret } from "../parts/Secret";
import { errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { useUnsaved } from "../parts/unsaved";
import { useProviders } from "../providers/api";
import { useFirstRecord } from "../requests/api";
import { keyTexts } from "../texts/keys";
import { providerTexts } from "../texts/providers";
import { startTexts } from "../texts/start";
import { AddProvider } from "./AddProvider";
import { useReadyProviders } from "./api";
import styles from "./StartPage.module.css";

/** The slug of the operators' organization, which has the sandbox if the platform does. */
const OPERATORS_ORGANIZATION = "default";
const SANDBOX = "sandbox";

/** The first steps, from setting up a provider to the first recorded request. The user can skip any step. The
 * navigation always contains this page. The key is shown once, so the page asks before it is lost, and opens the first
 * record by itself only if the user has copied the key before. */
export function StartPage() {
  const start = startTexts;
  const { administers } = useRights();
  const [key, setKey] = useState<CreatedKey | null>(null);
  const [isStored, setStored] = useState(false);
  useUnsaved(key !== null && !isStored, true);
  return (
    <Page title={start.title}>
      <ol className={styles["steps"]}>
        {administers && <ProviderStep />}
        <KeyStep apiKey={key} isStored={isStored} onCreated={setKey} onStored={() => setStored(true)} />
        <RequestStep apiKey={key} isStored={isStored} onCopied={() => setStored(true)} />
      </ol>
    </Page>
  );
}

function Step({ icon, title, done, children }: { icon: ReactNode; title: string; done: boolean; children: ReactNode }) {
  return (
    <li>
      <Panel label={title}>
        <div className={styles["step"]}>
          <h2 className={styles["title"]}>
            {done ? <CircleCheck aria-hidden size={18} className={styles["done"]} /> : icon}
            {title}
          </h2>
          {children}
        </div>
      </Panel>
    </li>
  );
}

function ProviderStep() {
  const start = startTexts;
  const providers = useReadyProviders();
  const [adding, setAdding] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const { slug } = useSession().organization;
  const { data: all } = useProviders();
  const names = providers.data?.map(({ name }) => name) ?? [];
  const hasSandbox = providers.data?.some(({ kind }) => kind === SANDBOX) === true;
  const isSandboxOff = slug === OPERATORS_ORGANIZATION && all?.every(({ kind }) => kind !== SANDBOX) === true;
  return (
    <Step icon={<Plug aria-hidden size={18} />} title={start.provider} done={names.length > 0}>
      <p className={styles["text"]}>
        {names.length === 0 ? start.noProvider : start.readyProviders(names.join(", "))} {hasSandbox && start.sandboxReady}
      </p>
      {isSandboxOff && <p className={styles["text"]}>{start.sandboxOff}</p>}
      <div><Button ref={opener} onClick={() => setAdding(true)}><Plus aria-hidden />{start.addProvider}</Button></div>
      <Dialog open={adding} onClose={() => setAdding(false)} returnTo={opener} title={providerTexts.newTitle} text={start.addProviderText}>
        <AddProvider onDone={() => setAdding(false)} />
      </Dialog>
    </Step>
  );
}

function KeyStep({ apiKey, isStored, onCreated, onStored }: {
  apiKey: CreatedKey | null;
  isStored: boolean;
  onCreated: (key: CreatedKey) => void;
  onStored: () => void;
}) {
  const start = startTexts;
  const create = useCreateKey();
  return (
    <Step icon={<KeyRound aria-hidden size={18} />} title={start.key} done={apiKey !== null}>
      <p className={styles["text"]}>{apiKey === null ? start.keyText : keyTexts.createdText}</p>
      {apiKey === null ? (
        <div>
          <Button
            look="primary" busy={create.isPending}
            onClick={() =>
              create.mutate({ description: start.keyName }, {
                onSuccess: onCreated,
                onError: (error) => toast(errorText(error), "failed"),
              })}
          >
            {keyTexts.create}
          </Button>
        </div>
      ) : (
        <>
          <Secret label={keyTexts.yourKey} text={apiKey.api_key} onCopied={onStored} />
          <div><Button size="small" disabled={isStored} onClick={onStored}>{isStored && <Check aria-hidden />}{start.stored}</Button></div>
        </>
      )}
    </Step>
  );
}

function RequestStep({ apiKey, isStored, onCopied }: { apiKey: CreatedKey | null; isStored: boolean; onCopied: () => void }) {
  const start = startTexts;
  const navigate = useNavigate();
  const model = useExampleModel();
  const record = useFirstRecord(apiKey?.id);
  const id = record.data?.id;
  // If the key was not stored when the request arrived, the page stays, also after the user has copied the key.
  const [stays, setStays] = useState(false);
  if (id !== undefined && !isStored && !stays) setStays(true);
  useEffect(() => {
    if (id !== undefined && apiKey !== null && isStored && !stays) void navigate({ to: "/requests", search: searchOf(apiKey, id) });
  }, [apiKey, id, isStored, stays, navigate]);
  return (
    <Step icon={<Send aria-hidden size={18} />} title={start.request} done={id !== undefined}>
      {apiKey === null ? (
        <p className={styles["text"]}>{start.requestText}</p>
      ) : (
        <>
          <CodeTabs label={keyTexts.tryIt} programs={programs(apiKey.api_key, location.origin, model)} secret={apiKey.api_key} onCopied={onCopied} />
          <p className={styles["waiting"]} role="status">{id === undefined ? start.waiting : isStored ? start.arrivedSaved : start.arrived}</p>
          {id !== undefined && (
            <div><Link to="/requests" search={searchOf(apiKey, id)} className={buttonClass("primary")}>{start.openRecord}</Link></div>
          )}
        </>
      )}
      <p className={styles["text"]}><Link to="/">{start.skip}</Link></p>
    </Step>
  );
}

/** The search parameters that open the record of a key's request. */
function searchOf({ id: key }: CreatedKey, record: string) {
  return { period: "all", key, record } as const;
}
