import { Pencil } from "lucide-react";
import { useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { dateUtc, wholeNumber } from "../parts/format";
import { Panel } from "../parts/Page";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { retentionTexts } from "../texts/retention";
import { firstDays, type Retention } from "./api";
import { PolicyForm } from "./PolicyForm";
import styles from "./RetentionPage.module.css";

const RUN_TONES: Record<string, Tone> = { success: "success", failed: "danger", held: "warning" };

/** The retention current periods, the source of each, and the last run of the archiver. */
export function PolicyPanel({ policy, isHeld }: { policy: Retention; isHeld: boolean }) {
  const retention = retentionTexts;
  const { administers } = useRights();
  const first = firstDays({ hot: policy.hot_retention_days, warm: policy.warm_retention_days, coldYears: policy.cold_retention_years });
  const sourceOf = (field: string) => texts.sources[policy.sources[field] ?? "default"];
  const { last_archival_run: lastRun, last_archival_status: lastStatus } = policy;
  return (
    <Panel title={retention.policy} actions={administers && <EditButton policy={policy} />}>
      {isHeld && <p className={styles["held"]}><Badge tone="warning">{retention.overridden}</Badge> {retention.overriddenText}</p>}
      <Facts>
        <Fact name={retention.hot} source={sourceOf("hot_retention_days")}>
          {retention.days(policy.hot_retention_days)} {!isHeld && <span className={styles["muted"]}>{retention.since(dateUtc(first.database))}</span>}
        </Fact>
        <Fact name={retention.warm} source={sourceOf("warm_retention_days")}>{retention.days(policy.warm_retention_days)}</Fact>
        <Fact name={retention.cold} source={sourceOf("cold_retention_years")}>
          {retention.years(policy.cold_retention_years)} {!isHeld && <span className={styles["muted"]}>{retention.since(dateUtc(first.archive))}</span>}
        </Fact>
        <Fact name={retention.schedule} source={sourceOf("archiver_schedule")}><code>{policy.archiver_schedule}</code></Fact>
        <Fact name={retention.lastRun}>
          {typeof lastRun === "string" && typeof lastStatus === "string" ? (
            <>
              <Badge tone={RUN_TONES[lastStatus] ?? "neutral"}>{retention.runOf(lastStatus)}</Badge>
              <Time at={lastRun} />
              <span className={styles["muted"]}>{retention.rows(wholeNumber(policy.rows_archived_last_run))}</span>
            </>
          ) : retention.neverRun}
        </Fact>
      </Facts>
    </Panel>
  );
}

function EditButton({ policy }: { policy: Retention }) {
  const retention = retentionTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}><Pencil aria-hidden />{retention.edit}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={retention.editTitle} text={retention.editText}>
        <PolicyForm policy={policy} onDone={close} />
      </Dialog>
    </>
  );
}
