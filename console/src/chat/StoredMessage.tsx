import { Link } from "@tanstack/react-router";
import { memo, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { classes } from "../parts/classes";
import { CopyButton } from "../parts/Copy";
import { dollars, wholeNumber } from "../parts/format";
import { Time } from "../parts/Time";
import { DlpBadge } from "../requests/status";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import { type Message, useAnswerRecord } from "./api";
import styles from "./ChatPage.module.css";
import { Markdown, PlainText } from "./Markdown";
import { messageOf } from "./messages";

/** A message as it is stored, and for an answer what it used, what it cost, and what data protection did. */
export const StoredMessage = memo(function StoredMessage({ message, isPriced, isStopped, failure }: {
  message: Message;
  isPriced: boolean;
  isStopped: boolean;
  failure: unknown;
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
      {failure !== undefined && <p className={styles["fault"]} role="alert">{messageOf(failure)}</p>}
      {isAnswer && <AnswerFoot message={message} isPriced={isPriced} />}
    </li>
  );
});

function AnswerFoot({ message, isPriced }: { message: Message; isPriced: boolean }) {
  const { request } = texts;
  const chat = chatTexts;
  const [wanted, setWanted] = useState(false);
  const { data: record } = useAnswerRecord(message.request_id, isPriced || wanted);
  return (
    <div className={styles["foot"]}>
      <CopyButton text={message.content} label={chat.copyAnswer} />
      {record ? (
        <>
          <DlpBadge action={record.dlp_action} />
          <span>{chat.tokens(wholeNumber(record.input_tokens), wholeNumber(record.output_tokens))}</span>
          <span title={record.cost_usd === null ? request.unpriced : undefined}>{record.cost_usd === null ? chat.noPrice : dollars(record.cost_usd)}</span>
          <Link to="/requests" search={{ request: record.request_id, period: "all" }}>{chat.record}</Link>
        </>
      ) : (
        !isPriced && !wanted && message.request_id !== null && <Button look="quiet" size="small" onClick={() => setWanted(true)}>{chat.showCost}</Button>
      )}
    </div>
  );
}
