import { Link } from "@tanstack/react-router";
import { Badge, type Tone } from "../parts/Badge";
import { Fact, Facts } from "../parts/Facts";
import { duration, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { siemTexts } from "../texts/siem";
import type { Siem } from "./api";
import styles from "./SiemPage.module.css";

type State = "paused" | "flagOff" | "failing" | "active";

const TONES: Record<State, Tone> = { paused: "neutral", flagOff: "warning", failing: "danger", active: "success" };

/** Whether records are sent, how many wait, and why the last batch failed. */
export function ForwardingPanel({ siem: shown }: { siem: Siem }) {
  const siem = siemTexts;
  const { backlog, lag_seconds: lag = null, last_sent_at: sentAt = null, last_error: error = null, last_failed_at: failedAt = null, skipped } = shown.status;
  const state = stateOf(shown);
  return (
    <Panel title={siem.forwarding} actions={<Badge tone={TONES[state]}>{siem.states[state]}</Badge>}>
      {state !== "active" && (
        <p className={styles["state"]}>
          {siem.stateTexts[state]} {state === "flagOff" && <Link to="/organization">{siem.toFlags}</Link>}
        </p>
      )}
      <Facts>
        {error !== null && (
          <Fact name={siem.lastError} {...(state !== "failing" && { source: siem.before })}>
            <span className={styles["failed"]}>{error}</span>
            {failedAt !== null && <Time at={failedAt} as="relative" />}
          </Fact>
        )}
        <Fact name={siem.backlog}>{wholeNumber(backlog)}</Fact>
        <Fact name={siem.lag}>{lag === null ? texts.none : duration(lag * 1000)}</Fact>
        <Fact name={siem.lastSent}>{sentAt === null ? siem.never : <Time at={sentAt} as="relative" />}</Fact>
        {skipped > 0 && <Fact name={siem.skipped} source={siem.skippedText}>{wholeNumber(skipped)}</Fact>}
      </Facts>
    </Panel>
  );
}

function stateOf({ enabled, status }: Siem): State {
  if (!enabled) return "paused";
  if (!status.active) return "flagOff";
  return (status.last_error ?? null) === null ? "active" : "failing";
}
