import { Link, useNavigate } from "@tanstack/react-router";
import { CircleCheck, KeyRound, Plug, Plus, Send } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { type CreatedKey, useCreateKey } from "../keys/api";
import { programs } from "../keys/programs";
import { useExampleModel } from "../models/usable";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { Dialog } from "../parts/Dialog";
import { Page, Panel } from "../parts/Page";
import { Secret } from "../parts/Secret";
import { errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { useFirstRecord } from "../requests/api";
import { keyTexts } from "../texts/keys";
import { providerTexts } from "../texts/providers";
import { startTexts } from "../texts/start";
import { AddProvider } from "./AddProvider";
import { useReadyProviders } from "./api";
import styles from "./StartPage.module.css";

/** The first steps, from setting up a provider to the first recorded request. The user can skip any step. The
 * navigation always contains this page. */
export function StartPage() {
  const start = startTexts;
  const { administers } = useRights();
  const [key, setKey] = useState<CreatedKey | null>(null);
  return (
    <Page title={start.title}>
      <ol className={styles["steps"]}>
        {administers && <ProviderStep />}
        <KeyStep apiKey={key} onCreated={setKey} />
        <RequestStep apiKey={key} />
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
  const names = providers.data?.map(({ name }) => name) ?? [];
  return (
    <Step icon={<Plug aria-hidden size={18} />} title={start.provider} done={names.length > 0}>
      <p className={styles["text"]}>{names.length === 0 ? start.noProvider : start.readyProviders(names.join(", "))}</p>
      <div><Button ref={opener} onClick={() => setAdding(true)}><Plus aria-hidden />{start.addProvider}</Button></div>
      <Dialog open={adding} onClose={() => setAdding(false)} returnTo={opener} title={providerTexts.newTitle} text={start.addProviderText}>
        <AddProvider onDone={() => setAdding(false)} />
      </Dialog>
    </Step>
  );
}

function KeyStep({ apiKey, onCreated }: { apiKey: CreatedKey | null; onCreated: (key: CreatedKey) => void }) {
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
        <Secret label={keyTexts.yourKey} text={apiKey.api_key} />
      )}
    </Step>
  );
}

function RequestStep({ apiKey }: { apiKey: CreatedKey | null }) {
  const start = startTexts;
  const navigate = useNavigate();
  const model = useExampleModel();
  const record = useFirstRecord(apiKey?.id);
  const id = record.data?.id;
  useEffect(() => {
    if (id !== undefined && apiKey !== null) void navigate({ to: "/requests", search: { period: "all", key: apiKey.id, record: id } });
  }, [apiKey, id, navigate]);
  return (
    <Step icon={<Send aria-hidden size={18} />} title={start.request} done={id !== undefined}>
      {apiKey === null ? (
        <p className={styles["text"]}>{start.requestText}</p>
      ) : (
        <>
          <CodeTabs label={keyTexts.tryIt} programs={programs(apiKey.api_key, location.origin, model)} />
          <p className={styles["waiting"]} role="status">{start.waiting}</p>
        </>
      )}
      <p className={styles["text"]}><Link to="/">{start.skip}</Link></p>
    </Step>
  );
}
