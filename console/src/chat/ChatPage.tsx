import { useParams } from "@tanstack/react-router";
import { chatTexts } from "../texts/chat";
import { Page } from "../parts/Page";
import { ErrorState } from "../parts/states";
import styles from "./ChatPage.module.css";
import { useConversation } from "./api";
import { ConversationActions } from "./ConversationActions";
import { ConversationList } from "./ConversationList";
import { Conversation } from "./Conversation";
import { NewConversation } from "./NewConversation";

/** The list of the user's conversations, beside the open conversation or the form that begins a new one. */
export function ChatPage() {
  const { conversationId } = useParams({ strict: false });
  return conversationId === undefined ? (
    <Page title={chatTexts.title} wide>
      <div className={styles["columns"]}>
        <NewConversation />
        <ConversationList />
      </div>
    </Page>
  ) : (
    <OpenConversation key={conversationId} id={conversationId} />
  );
}

function OpenConversation({ id }: { id: string }) {
  const conversation = useConversation(id);
  const { data } = conversation;
  return (
    <Page
      title={data === undefined ? chatTexts.title : (data.title ?? chatTexts.untitled)} wide
      actions={data && <ConversationActions conversation={data} />}
    >
      <div className={styles["columns"]} data-open>
        {conversation.error && data === undefined ? (
          <ErrorState error={conversation.error} onRetry={() => void conversation.refetch()} />
        ) : (
          <Conversation id={id} conversation={data} />
        )}
        <ConversationList openId={id} />
      </div>
    </Page>
  );
}
