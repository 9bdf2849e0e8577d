import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { ApiError, failure } from "../api/errors";
import type { components } from "../api/schema";
import chat from "../chat/ChatPage.module.css";
import { Markdown, PlainText } from "../chat/Markdown";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { classes } from "../parts/classes";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import { sharedTexts } from "../texts/shared";
import { Unlink } from "lucide-react";
import styles from "./SharedPage.module.css";

type Conversation = components["schemas"]["SharedConversation"];

/** A shared conversation, for everybody who has the link. It needs no session. */
export function SharedPage({ token }: { token: string }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["shared", token],
    queryFn: ({ pageParam }) => load(token, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor: cursor }) => cursor,
  });
  const conversation = data?.pages[0];
  const title = conversation?.title ?? sharedTexts.title;
  useEffect(() => {
    document.title = texts.titleOf(title);
  }, [title]);
  const isGone = error instanceof ApiError && error.status === 404;
  return (
    <main className={styles["page"]}>
      <header className={styles["head"]}>
        <h1 className={styles["title"]}>{title}</h1>
        {conversation && <p className={styles["note"]}>{sharedTexts.note(conversation.model)} <Time at={conversation.updated_at} /></p>}
      </header>
      {isGone ? (
        <EmptyState icon={Unlink} title={sharedTexts.gone} text={sharedTexts.goneText} />
      ) : error !== null && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <div className={chat["bars"]} role="status" aria-label={texts.loading}><Skeleton width="70%" /><Skeleton width="90%" /><Skeleton width="50%" /></div>
      ) : (
        <ol className={chat["messages"]} aria-label={chatTexts.messages}>
          {data.pages.flatMap(({ messages }) => messages).map((message, at) => <Message key={at} message={message} />)}
        </ol>
      )}
      {conversation?.messages.length === 0 && <p className={styles["note"]}>{sharedTexts.empty}</p>}
      {hasNextPage && <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>{sharedTexts.more}</Button>}
      {error !== null && data !== undefined && <ErrorState error={error} onRetry={() => void fetchNextPage()} />}
    </main>
  );
}

function Message({ message }: { message: Conversation["messages"][number] }) {
  const isAnswer = message.role === "assistant";
  return (
    <li className={classes(chat["message"], !isAnswer && chat["question"])}>
      <div className={chat["head"]}>
        <h2 className={chat["author"]}>{isAnswer ? (message.model ?? chatTexts.model) : sharedTexts.question}</h2>
        <Time at={message.created_at} />
        {message.status === "incomplete" && <Badge tone="warning">{chatTexts.incomplete}</Badge>}
      </div>
      {isAnswer ? <Markdown text={message.content} /> : <PlainText text={message.content} />}
    </li>
  );
}

/** Loads a page of the conversation. Throws ApiError. */
async function load(token: string, cursor: string | null): Promise<Conversation> {
  const query = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
  const response = await fetch(`/api/conversations/shared/${encodeURIComponent(token)}${query}`, { headers: { Accept: "application/json" } });
  if (!response.ok) throw await failure(response);
  return (await response.json()) as Conversation;
}
