import { Plus } from "lucide-react";
import { useRef, useState } from "react";
import { newSecret } from "../api/secrets";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { webhookTexts } from "../texts/webhooks";
import { useCreateWebhook } from "./api";
import { WebhookForm } from "./WebhookForm";

/** Creates a webhook, and then shows its secret once. */
export function CreateWebhook() {
  const { rules } = texts;
  const webhooks = webhookTexts;
  const [open, setOpen] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const create = useCreateWebhook();
  const close = () => {
    setOpen(false);
    setSecret(null);
  };
  return (
    <>
      <Button ref={trigger} look="primary" onClick={() => setOpen(true)}><Plus aria-hidden />{webhooks.new}</Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} persistent={secret !== null} wide={secret === null}
        title={secret === null ? webhooks.newTitle : webhooks.createdTitle} text={secret === null ? webhooks.newText : webhooks.createdText}
      >
        {secret === null ? (
          <WebhookForm
            onCancel={close}
            onSubmit={async (fields) => {
              const shown = await create.mutateAsync({ ...fields, secret: fields.secret || newSecret() });
              toast(rules.created(fields.name));
              if (shown === null) close();
              else setSecret(shown);
            }}
          />
        ) : (
          <>
            <Secret label={webhooks.secret} text={secret} />
            <DialogActions><Button look="primary" onClick={close}>{texts.done}</Button></DialogActions>
          </>
        )}
      </Dialog>
    </>
  );
}
