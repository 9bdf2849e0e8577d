import type { RefObject } from "react";
import { useExampleModel } from "../models/usable";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { type CreatedKey, useCreateKey } from "./api";
import styles from "./CreateKeyDialog.module.css";
import { KeyForm } from "./KeyForm";
import { programs } from "./programs";

/** Creates a key of the user or of a service account, and then shows it once. */
export function CreateKeyDialog({ open, onClose, returnTo, serviceAccount }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
  serviceAccount?: { id: string; name: string };
}) {
  const [created, setCreated] = useResetOnOpen<CreatedKey | null>(open, null);
  return (
    <Dialog
      open={open}
      onClose={onClose}
      returnTo={returnTo}
      persistent={created !== null}
      title={created === null ? keyTexts.newTitle : keyTexts.createdTitle}
      text={created !== null ? keyTexts.createdText : serviceAccount === undefined ? keyTexts.newText : keyTexts.newServiceText(serviceAccount.name)}
    >
      {created === null ? <NewKey owner={serviceAccount?.id} onCreated={setCreated} onCancel={onClose} /> : <CreatedSecret apiKey={created} onDone={onClose} />}
    </Dialog>
  );
}

function NewKey({ owner, onCreated, onCancel }: { owner: string | undefined; onCreated: (key: CreatedKey) => void; onCancel: () => void }) {
  const create = useCreateKey(owner);
  return <KeyForm onSubmit={async (body) => onCreated(await create.mutateAsync(body))} onCancel={onCancel} />;
}

function CreatedSecret({ apiKey, onDone }: { apiKey: CreatedKey; onDone: () => void }) {
  const model = useExampleModel();
  return (
    <div className={styles["created"]}>
      <Secret label={keyTexts.yourKey} text={apiKey.api_key} />
      <h3 className={styles["try"]}>{keyTexts.tryIt}</h3>
      <CodeTabs label={keyTexts.tryIt} programs={programs(apiKey.api_key, location.origin, model)} />
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </div>
  );
}
