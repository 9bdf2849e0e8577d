import { Badge } from "../parts/Badge";
import { TrialPanel } from "../parts/Trial";
import { mailTestTexts } from "../texts/organization";
import { useSendTestMail, useTestMailResult } from "./api";

/** Sends a test mail to the administrator, and shows the result of sending it. */
export function MailTest() {
  const mailTest = mailTestTexts;
  const send = useSendTestMail();
  const result = useTestMailResult(send.data?.id);
  const event = result.data;
  return (
    <TrialPanel
      title={mailTest.title} text={mailTest.text} action={mailTest.send} busy={send.isPending} onRun={() => send.mutate()}
      data={event ?? send.data} error={send.error ?? result.error}
      result={send.data !== undefined && (
        event === undefined ? <p>{result.isLate ? mailTest.noResult : mailTest.queued(send.data.sent_to)}</p>
        : event.outcome === "success" ? <p><Badge tone="success">{mailTest.sent}</Badge> {mailTest.sentText(send.data.sent_to)}</p>
        : <p><Badge tone="danger">{mailTest.failed}</Badge> {event.reason}</p>
      )}
    />
  );
}
