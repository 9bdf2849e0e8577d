import { Link } from "@tanstack/react-router";
import { Actor } from "../audit/Actor";
import type { AuditEvent } from "../audit/api";
import { EventDetails } from "../audit/EventDetails";
import { buttonClass } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { duration, wholeNumber } from "../parts/format";
import { Time } from "../parts/Time";
import { useKeyName } from "../requests/choosing";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { callOf } from "./calls";
import { Outcome } from "./CallsPage";
import styles from "./mcp.module.css";

/** One call of a tool. Its arguments and its result are not stored. */
export function CallDialog({ event, onClose }: { event: AuditEvent | null; onClose: () => void }) {
  return (
    <Dialog open={event !== null} onClose={onClose} title={event === null ? mcpTexts.call : callOf(event).tool ?? mcpTexts.unknownTool} text={mcpTexts.notStored} wide>
      {event !== null && <Details event={event} />}
    </Dialog>
  );
}

function Details({ event }: { event: AuditEvent }) {
  const mcp = mcpTexts;
  const call = callOf(event);
  const key = useKeyName(call.apiKeyId);
  return (
    <>
      <div className={styles["facts"]}><Facts>
        <Fact name={mcp.outcome}><Outcome outcome={event.outcome} />{call.isError && <span>{mcp.toolError}</span>}</Fact>
        {event.reason !== null && <Fact name={mcp.error}><code>{event.reason}</code></Fact>}
        <Fact name={mcp.server}>{call.server}</Fact>
        <Fact name={mcp.time}><Time at={event.timestamp} /></Fact>
        <Fact name={mcp.callerName}><Actor event={event} /></Fact>
        {key !== null && <Fact name={mcp.key}>{key}</Fact>}
        {event.ip !== null && <Fact name={mcp.address}>{event.ip}</Fact>}
        {call.status !== null && <Fact name={mcp.httpStatus}>{call.status}</Fact>}
        <Fact name={mcp.duration}>{duration(call.latencyMs)}</Fact>
        <Fact name={mcp.serverDuration}>{duration(call.upstreamMs)}</Fact>
        <Fact name={mcp.resultBytes}>{call.resultBytes === null ? texts.none : `${wholeNumber(call.resultBytes)} B`}</Fact>
        <Fact name={mcp.dlp}>{call.dlpAction === null ? texts.none : texts.dlpActionOf(call.dlpAction)}</Fact>
        <Fact name={mcp.argumentsDigest}><code className={styles["hash"]}>{call.argumentsDigest ?? texts.none}</code></Fact>
        <Fact name={mcp.definitionHash}><code className={styles["hash"]}>{call.definitionHash ?? texts.none}</code></Fact>
        {event.request_id !== null && <Fact name={mcp.request}><code>{event.request_id}</code></Fact>}
        {call.rules.length > 0 && <Fact name={mcp.filters}><EventDetails details={{ rules: call.rules }} /></Fact>}
      </Facts></div>
      <DialogActions>
        <Link to="/audit" search={{ event: event.sequence }} className={buttonClass()}>{mcp.toEvent}</Link>
      </DialogActions>
    </>
  );
}
