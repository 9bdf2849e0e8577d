import { Link } from "@tanstack/react-router";
import { RefreshCw } from "lucide-react";
import { memo, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { classes } from "../parts/classes";
import { CopyButton } from "../parts/Copy";
import { dollars, wholeNumber } from "../parts/format";
import { errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { DlpBadge } from "../requests/status";
import { recordTexts } from "../texts/requests";
import { chatTexts } from "../texts/chat";
import { type Message, useAnswerRecord } from "./api";
import styles from "./ChatPage.module.css";
import { Markdown, PlainText } from "./Markdown";

/** A stored message. For an answer, also shows its tokens, its cost and the DLP action. If `onRegenerate` is set, the
 * answer has a button that asks for another answer. */
export const StoredMessage = memo(function StoredMessage({ message, isPriced, isStopped, failure, onRegenerate }: {
  message: Message;
  isPriced: boolean;
  isStopped: boolean;
  failure: unknown;
  onRegenerate?: (() => void) | undefined;
}) {
  const chat = chatTexts;
  const isAnswer = message.role === "assistant";
  return (
    <li className={classes(styles["message"], !isAnswer && styles["question"])}>
      <div className={styles["head"]}>
        <h2 className={styles["author"]}>{isAnswer ? (message.model ?? chat.model) : chat.you}</h2>
        <Time at={message.created_at} />
        {isAnswer && message.status === "incomplete" && <Badge tone="warning">{isStopped ? chat.stopped : chat.incomplete}</Badge>}
        {isAnswer && message.finish_reason === "length" && <Badge tone="warning">{chat.tooLong}</Badge>}
      </div>
      {isAnswer ? <Markdown text={message.content} /> : <PlainText text={message.content} />}
      {failure !== undefined && <p className={styles["fault"]} role="alert">{errorText(failure)}</p>}
      {isAnswer && <AnswerFoot message={message} isPriced={isPriced} onRegenerate={onRegenerate} />}
    </li>
  );
});

function AnswerFoot({ message, isPriced, onRegenerate }: { message: Message; isPriced: boolean; onRegenerate: (() => void) | undefined }) {
  const request = recordTexts;
  const chat = chatTexts;
  const [isRequested, setRequested] = useState(false);
  const { data: record } = useAnswerRecord(message.request_id, isPriced || isRequested);
  return (
    <div className={styles["foot"]}>
      <CopyButton text={message.content} label={chat.copyAnswer} />
      {onRegenerate && (
        <Button look="quiet" size="icon" aria-label={chat.regenerate} title={chat.regenerate} onClick={onRegenerate}><RefreshCw aria-hidden size={14} /></Button>
      )}
      {record ? (
        <>
          <DlpBadge action={record.dlp_action} />
          <span>{chat.tokens(wholeNumber(record.input_tokens), wholeNumber(record.output_tokens))}</span>
          <span title={record.cost_usd === null ? request.unpriced : undefined}>{record.cost_usd === null ? chat.noPrice : dollars(record.cost_usd)}</span>
          <Link to="/requests" search={{ request: record.request_id, period: "all" }}>{chat.record}</Link>
        </>
      ) : (
        !isPriced && !isRequested && message.request_id !== null && <Button look="quiet" size="small" onClick={() => setRequested(true)}>{chat.showCost}</Button>
      )}
    </div>
  );
}
