import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { errorText } from "../parts/states";
import { chatTexts } from "../texts/chat";
import { useCreateConversation } from "./api";
import styles from "./ChatPage.module.css";
import { Composer } from "./Composer";
import { ask } from "./turns";

/** The form for the first question of a new conversation. Sending the question creates the conversation. */
export function NewConversation() {
  const chat = chatTexts;
  const [model, setModel] = useState("");
  const [draft, setDraft] = useState("");
  const create = useCreateConversation();
  const navigate = useNavigate();

  async function send() {
    const conversation = await create.mutateAsync(model === "" ? null : model).catch(() => null);
    if (conversation === null) return;
    void ask(conversation.id, draft, conversation.model, 0);
    setDraft("");
    await navigate({ to: "/chat/$conversationId", params: { conversationId: conversation.id } });
  }

  return (
    <section className={styles["conversation"]} aria-label={chat.new}>
      <div className={styles["welcome"]}>
        <h2>{chat.welcome}</h2>
        <p className={styles["welcomeText"]}>{chat.welcomeText}</p>
      </div>
      <Composer
        draft={draft} onDraft={setDraft} model={model} onModel={setModel} defaultModel busy={create.isPending} onSend={() => void send()}
        fault={create.error === null ? undefined : errorText(create.error)}
      />
    </section>
  );
}
