import { Link } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "../parts/Button";
import { ErrorState, errorText, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import { AUTO_MODEL, type Conversation as Stored, type Message, useMessages, useUpdateConversation } from "./api";
import styles from "./ChatPage.module.css";
import { Composer } from "./Composer";
import { StoredMessage } from "./StoredMessage";
import { lastSequence, shownMessages } from "./messages";
import { RunningTurn } from "./RunningTurn";
import { isActive } from "./turn";
import { ask, discard, stop, useTurn } from "./turns";

/** The number of newest messages that are shown at first. The button for earlier messages adds as many. */
const SHOWN_MESSAGES = 60;
/** The cost of answers among this many newest messages is loaded at once. The cost of older answers is loaded on
 * demand. */
const PRICED_MESSAGES = 10;
/** If the visible area ends at less than this distance from the end of the page, the page scrolls to new text. */
const NEAR_END_PIXELS = 160;

/** The messages of a conversation, and the field for the next question. */
export function Conversation({ id, conversation }: { id: string; conversation: Stored | undefined }) {
  const chat = chatTexts;
  const messages = useMessages(id);
  const turn = useTurn(id);
  const update = useUpdateConversation(id);
  const [draft, setDraft] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const [limit, setLimit] = useState(SHOWN_MESSAGES);
  const model = (update.isPending ? update.variables.model : undefined) ?? conversation?.model ?? AUTO_MODEL;
  const stored = messages.data;
  const shown = shownMessages(stored ?? [], turn);
  const visible = shown.messages.slice(-limit);
  useFollowedEnd(`${shown.messages.length}/${shown.turn?.answer.length ?? 0}/${shown.turn?.state ?? ""}`);

  function send(question: string, chosen: string) {
    if (stored !== undefined) void ask(id, question, chosen, lastSequence(stored));
  }

  /** Asks the newest question again. Its new answer takes the place of the last one. */
  function regenerate(question: Message) {
    // The button goes away with the answer, so the field gets the focus.
    field.current?.focus();
    void ask(id, question.content, model, question.sequence - 1, question.id);
  }

  const newest = stored?.findLast(({ role }) => role === "user");
  const canRegenerate = newest !== undefined && conversation !== undefined && shown.turn === undefined;

  if (messages.error && stored === undefined) return <ErrorState error={messages.error} onRetry={() => void messages.refetch()} />;
  return (
    <section className={styles["conversation"]} aria-label={chat.conversation}>
      <Link to="/chat" className={styles["back"]}>{chat.all}</Link>
      {visible.length < shown.messages.length && (
        <span className={styles["earlier"]}><Button size="small" onClick={() => setLimit(limit + SHOWN_MESSAGES)}>{chat.earlier}</Button></span>
      )}
      {stored === undefined && shown.turn === undefined && (
        <div className={styles["bars"]} role="status" aria-label={texts.loading}><Skeleton width="70%" /><Skeleton width="90%" /><Skeleton width="50%" /></div>
      )}
      <ol className={styles["messages"]} aria-label={chat.messages}>
        {visible.map((message, at) => (
          <StoredMessage
            key={message.id} message={message} isPriced={at >= visible.length - PRICED_MESSAGES}
            isStopped={turn?.state === "stopped" && message.sequence > turn.after}
            failure={turn?.state === "failed" && message === visible.at(-1) ? turn.error : undefined}
            onRegenerate={canRegenerate && message === visible.at(-1) ? () => regenerate(newest) : undefined}
          />
        ))}
        {shown.turn && (
          <RunningTurn
            turn={shown.turn}
            // The buttons go away with the turn, so the field gets the focus.
            onRetry={() => {
              field.current?.focus();
              if (shown.turn) void ask(id, shown.turn.question, model, shown.turn.after, shown.turn.replaces);
            }}
            onEdit={() => {
              field.current?.focus();
              setDraft(shown.turn?.question ?? "");
              discard(id);
            }}
          />
        )}
      </ol>
      <p className={styles["hidden"]} role="status">{isActive(turn) ? chat.answering : turn?.state === "done" ? chat.answered : ""}</p>
      <Composer
        field={field} draft={draft} onDraft={setDraft} model={model} busy={stored === undefined || conversation === undefined}
        onModel={(chosen) => update.mutate({ model: chosen }, { onError: (error) => toast(errorText(error), "failed") })}
        onSend={() => {
          send(draft, model);
          setDraft("");
        }}
        onStop={isActive(turn) ? () => stop(id) : undefined}
      />
    </section>
  );
}

/** Keeps the end of the page in view while it grows, unless the user has scrolled up. */
function useFollowedEnd(content: string): void {
  const isNearEnd = useRef(true);
  useEffect(() => {
    const look = () => {
      isNearEnd.current = document.documentElement.scrollHeight - innerHeight - scrollY < NEAR_END_PIXELS;
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (isNearEnd.current) scrollTo(0, document.documentElement.scrollHeight);
  }, [content]);
}
