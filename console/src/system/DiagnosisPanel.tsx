import { RefreshCw } from "lucide-react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { systemTexts } from "../texts/system";
import { type Finding, useDiagnosis } from "./api";
import styles from "./SystemPage.module.css";
import { VERDICT_TONES } from "./tones";

/** The results of `gatehouse doctor` on the running platform, with remedies. */
export function DiagnosisPanel() {
  const system = systemTexts;
  const { operates } = useRights();
  const diagnosis = useDiagnosis();
  const { data } = diagnosis;
  return (
    <Panel
      title={system.checks}
      actions={<Button size="small" busy={diagnosis.isFetching} onClick={() => void diagnosis.refetch()}><RefreshCw aria-hidden />{system.checkAgain}</Button>}
    >
      {diagnosis.error && data === undefined ? (
        <ErrorState error={diagnosis.error} onRetry={() => void diagnosis.refetch()} />
      ) : data === undefined ? (
        <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : (
        <>
          <ul className={styles["list"]} aria-label={system.checks}>
            {data.findings.map((finding, at) => <FindingRow key={at} finding={finding} />)}
          </ul>
          <p className={styles["note"]}>{operates ? system.checkedBy(data.node ?? "") : system.forOperators}</p>
        </>
      )}
    </Panel>
  );
}

function FindingRow({ finding: { check, verdict, message, remedy } }: { finding: Finding }) {
  const system = systemTexts;
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]}>{system.checkOf(check)}</span>
        {message !== null && <span className={styles["muted"]}>{message}</span>}
        {remedy !== null && <span className={styles["remedy"]}>{system.remedy(remedy)}</span>}
      </span>
      <Badge tone={VERDICT_TONES[verdict]}>{system.verdicts[verdict]}</Badge>
    </li>
  );
}
