import { duration } from "../parts/format";
import { recordTexts } from "../texts/requests";
import type { UsageRecord } from "./api";
import styles from "./Timing.module.css";

/** Shows how the duration of a request is divided between the provider and Gatehouse. */
export function Timing({ record }: { record: UsageRecord }) {
  const request = recordTexts;
  const total = record.latency_ms;
  const provider = record.provider_latency_ms;
  const own = total === null || provider === null ? null : Math.max(0, total - provider);
  const share = total === null || provider === null || total === 0 ? null : Math.min(1, provider / total);
  return (
    <>
      {share !== null && (
        <div className={styles["bar"]} aria-hidden>
          <span className={styles["provider"]} style={{ width: `${share * 100}%` }} />
        </div>
      )}
      <Row name={request.total} value={total} />
      {provider !== null && <Row name={request.ofProvider} value={provider} mark="provider" />}
      {own !== null && <Row name={request.ofGateway} value={own} mark="own" />}
      {record.time_to_first_token_ms !== null && <Row name={request.toFirstToken} value={record.time_to_first_token_ms} />}
    </>
  );
}

function Row({ name, value, mark }: { name: string; value: number | null; mark?: "provider" | "own" }) {
  return (
    <div className={styles["row"]}>
      <dt>{mark !== undefined && <span className={`${styles["mark"]} ${styles[mark]}`} aria-hidden />}{name}</dt>
      <dd>{duration(value)}</dd>
    </div>
  );
}
