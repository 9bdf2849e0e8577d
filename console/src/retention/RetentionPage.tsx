import { Page, Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { retentionTexts } from "../texts/retention";
import { useLegalHold, useRetention } from "./api";
import { HoldPanel } from "./HoldPanel";
import { PolicyPanel } from "./PolicyPanel";
import styles from "./RetentionPage.module.css";

/** The retention policy with the last run of the archiver, and the legal hold. */
export function RetentionPage() {
  const retention = retentionTexts;
  const policy = useRetention();
  const hold = useLegalHold();
  const failed = [policy, hold].find((query) => query.error !== null && query.data === undefined);
  return (
    <Page title={retention.title}>
      {failed !== undefined ? (
        <Panel label={retention.title}><ErrorState error={failed.error} onRetry={() => void failed.refetch()} /></Panel>
      ) : policy.data === undefined || hold.data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : (
        <div className={styles["panels"]}>
          <PolicyPanel policy={policy.data} isHeld={hold.data.active} />
          <HoldPanel hold={hold.data} />
        </div>
      )}
    </Page>
  );
}
