import { useNavigate } from "@tanstack/react-router";
import { Pencil, Share2, Terminal, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { copyText } from "../parts/clipboard";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import { type Conversation, useDeleteConversation, useMessages, useUpdateConversation } from "./api";
import { curlOf } from "./curl";
import { ShareDialog } from "./ShareDialog";
import { isActive } from "./turn";
import { discard, stop, useTurn } from "./turns";

type Open = "rename" | "delete" | "share" | null;

/** The actions for the open conversation: share, rename, copy as curl, delete. */
export function ConversationActions({ conversation }: { conversation: Conversation }) {
  const chat = chatTexts;
  const { id } = conversation;
  const [open, setOpen] = useState<Open>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const shareTrigger = useRef<HTMLButtonElement>(null);
  const remove = useDeleteConversation(id);
  const navigate = useNavigate();
  const messages = useMessages(id);
  const turn = useTurn(id);
  const question = turn?.question ?? messages.data?.findLast(({ role }) => role === "user")?.content;
  const name = conversation.title ?? chat.untitled;
  const close = () => setOpen(null);

  function copyCurl(text: string) {
    const curl = curlOf(location.origin, id, text, turn?.model ?? conversation.model);
    void copyText(curl).then((isCopied) => isCopied && toast(chat.curlCopied));
  }

  async function deleteConversation() {
    if (isActive(turn)) stop(id);
    await remove.mutateAsync();
    discard(id);
    await navigate({ to: "/chat" });
  }

  return (
    <>
      <Button ref={shareTrigger} onClick={() => setOpen("share")}><Share2 aria-hidden />{chat.share}</Button>
      <RowMenu label={chat.actions} trigger={trigger}>
        <MenuItem onClick={() => setOpen("rename")}><Pencil aria-hidden size={15} />{chat.rename}</MenuItem>
        <MenuItem disabled={question === undefined} onClick={() => question !== undefined && copyCurl(question)}>
          <Terminal aria-hidden size={15} />{chat.copyCurl}
        </MenuItem>
        <MenuItem danger onClick={() => setOpen("delete")}><Trash2 aria-hidden size={15} />{chat.remove}</MenuItem>
      </RowMenu>
      <Dialog open={open === "rename"} onClose={close} returnTo={trigger} title={chat.renameTitle}>
        <RenameForm conversation={conversation} onClose={close} />
      </Dialog>
      <ShareDialog open={open === "share"} onClose={close} returnTo={shareTrigger} conversationId={id} />
      <ConfirmDialog
        open={open === "delete"} onClose={close} returnTo={trigger} title={chat.deleteTitle(name)} text={chat.deleteText}
        action={chat.delete} run={deleteConversation} done={chat.deleted(name)}
      />
    </>
  );
}

function RenameForm({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const chat = chatTexts;
  const update = useUpdateConversation(conversation.id);
  const form = useForm({ defaultValues: { title: conversation.title ?? "" } });
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={texts.rules.save} onCancel={onClose}
      onSubmit={async ({ title }) => {
        await update.mutateAsync({ title: title.trim() === "" ? null : title.trim() });
        onClose();
      }}
    >
      <TextField label={chat.name} hint={chat.nameHint} fault={errors.title?.message} autoFocus maxLength={200} {...form.register("title")} />
    </DialogForm>
  );
}
