import { ApiError } from "../api/errors";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { classes } from "../parts/classes";
import { errorText } from "../parts/states";
import { DlpBadge } from "../requests/status";
import { texts } from "../texts";
import { chatTexts } from "../texts/chat";
import styles from "./ChatPage.module.css";
import { Markdown, PlainText } from "./Markdown";
import { isActive, type Turn } from "./turn";

/** A question and its answer so far. If the question was refused or failed, shows the error. */
export function RunningTurn({ turn, onRetry, onEdit }: { turn: Turn; onRetry: () => void; onEdit: () => void }) {
  const chat = chatTexts;
  return (
    <>
      <li className={classes(styles["message"], styles["question"])}>
        <div className={styles["head"]}>
          <h2 className={styles["author"]}>{chat.you}</h2>
          <DlpBadge action={turn.dlpAction ?? null} />
        </div>
        <PlainText text={turn.question} />
      </li>
      <li className={styles["message"]} aria-busy={isActive(turn) || undefined}>
        <div className={styles["head"]}>
          <h2 className={styles["author"]}>{turn.model}</h2>
          {turn.state === "stopped" && <Badge tone="warning">{chat.stopped}</Badge>}
        </div>
        {turn.answer !== "" && <Markdown text={turn.answer} />}
        {turn.answer === "" && isActive(turn) && <p className={styles["waiting"]}>{chat.waiting}</p>}
        {turn.error !== undefined && <Refusal error={turn.error} />}
        {!isActive(turn) && turn.state !== "done" && (
          <div className={styles["buttons"]}>
            <Button size="small" onClick={onRetry}>{texts.retry}</Button>
            <Button size="small" onClick={onEdit}>{chat.edit}</Button>
          </div>
        )}
      </li>
    </>
  );
}

function Refusal({ error }: { error: unknown }) {
  const chat = chatTexts;
  const api = error instanceof ApiError ? error : null;
  return (
    <div className={styles["refusal"]} role="alert">
      <strong>{api?.code === "dlp_violation" ? chat.blocked : chat.notAnswered}</strong>
      <p>{errorText(error)}</p>
      {api?.requestId && <p className={styles["id"]}>{texts.errors.requestId(api.requestId)}</p>}
    </div>
  );
}
