import { Badge } from "../parts/Badge";
import { duration } from "../parts/format";
import { requestTexts } from "../texts/requests";
import type { UsageRecordDetails } from "./api";
import styles from "./RecordDetail.module.css";
import { Entries, Section } from "./Section";

/** The attempts of a request in their order, each with its result and its duration. */
export function Attempts({ record }: { record: UsageRecordDetails }) {
  return (
    <Section title={requestTexts.attempts}>
      <Entries none={record.cache === "hit" ? requestTexts.cached : requestTexts.noAttempts}>
        {record.attempts.map(({ provider, model_id: model, status, reason, duration_ms: milliseconds }, at) => (
          <li key={at} className={styles["entry"]}>
            <span className={styles["subject"]}><span className={styles["muted"]}>{provider}</span> {model}</span>
            <Badge tone={reason === null ? toneOf(record.status) : "danger"}>
              {reason === null ? answerOf(record.status) : status === null ? requestTexts.reasonOf(reason) : requestTexts.httpStatus(status)}
            </Badge>
            <span className={styles["note"]}>
              {[status !== null && reason !== null && requestTexts.reasonOf(reason), milliseconds !== null && duration(milliseconds)].filter(Boolean).join(" · ")}
            </span>
          </li>
        ))}
      </Entries>
    </Section>
  );
}

function toneOf(status: string) {
  return status === "error" ? "danger" : status === "cancelled" || status === "interrupted" ? "warning" : "success";
}

function answerOf(status: string): string {
  return requestTexts.answerOf[status] ?? requestTexts.answered;
}
