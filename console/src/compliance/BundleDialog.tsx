import { BadgeCheck } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { useKept } from "../api/versions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { DayColumns, dayName } from "../parts/DayColumns";
import { Dialog } from "../parts/Dialog";
import { wholeNumber } from "../parts/format";
import { EnabledBadge } from "../parts/rules";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { complianceTexts } from "../texts/compliance";
import { type Bundle, type PeriodDays, useAcknowledge, useBundleStats, useEntityTypes } from "./api";
import styles from "./BundleDialog.module.css";
import { StateBadge } from "./StateBadge";

/** The dialog with the entity types of a bundle, and the findings of these types in the period. */
export function BundleDialog({ bundle, days, onClose }: { bundle: Bundle | undefined; days: PeriodDays; onClose: () => void }) {
  return (
    <Dialog
      open={bundle !== undefined} onClose={onClose} title={bundle?.name ?? ""} {...(bundle?.description && { text: bundle.description })} wide
    >
      {bundle !== undefined && (
        <div key={bundle.id} className={styles["body"]}>
          <Contents bundle={bundle} />
          <Findings id={bundle.id} days={days} />
        </div>
      )}
    </Dialog>
  );
}

function Contents({ bundle }: { bundle: Bundle }) {
  const { kept, change } = useKept(bundle);
  const acknowledge = useAcknowledge();
  return (
    <>
      <Facts bundle={kept} onAcknowledge={() => change(acknowledge.mutateAsync)} />
      <Types types={kept.seed_rule_mappings} />
    </>
  );
}

function Facts({ bundle, onAcknowledge }: { bundle: Bundle; onAcknowledge: () => Promise<unknown> }) {
  const { rules } = texts;
  const compliance = complianceTexts;
  return (
    <dl className={styles["facts"]}>
      <Fact name={compliance.framework}>{bundle.regulatory_framework} {bundle.version}</Fact>
      <Fact name={rules.status}><StateBadge bundle={bundle} /> <EnabledBadge enabled={bundle.enabled} /></Fact>
      <Fact name={compliance.acknowledged}><Acknowledged bundle={bundle} onAcknowledge={onAcknowledge} /></Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div className={styles["fact"]}><dt>{name}</dt><dd>{children}</dd></div>;
}

function Acknowledged({ bundle, onAcknowledge }: { bundle: Bundle; onAcknowledge: () => Promise<unknown> }) {
  const { name, state, acknowledged_by: by, acknowledged_at: at } = bundle;
  const compliance = complianceTexts;
  const { administers } = useRights();
  const person = useUserName(by);
  const [busy, setBusy] = useState(false);
  if (at !== null) return <>{person ?? texts.none}, <Time at={at} /></>;
  if (!administers || state === "archived") return <>{compliance.notAcknowledged}</>;
  return (
    <Button
      size="small" busy={busy}
      onClick={() => {
        setBusy(true);
        report(onAcknowledge().finally(() => setBusy(false)), () => toast(compliance.acknowledgedNow(name)));
      }}
    >
      <BadgeCheck aria-hidden />{compliance.acknowledge}
    </Button>
  );
}

/** Lists the entity types, and names those that no built-in pattern finds and that therefore need a rule of the
 * organization. */
function Types({ types }: { types: readonly string[] }) {
  const compliance = complianceTexts;
  const known = useEntityTypes();
  const withoutPatterns = known.data?.filter(({ detectors }) => !detectors.includes("regex")).map(({ entity_type: type }) => type) ?? [];
  const unfound = types.filter((type) => withoutPatterns.includes(type));
  return (
    <section>
      <h3 className={styles["title"]}>{compliance.types}</h3>
      <ul className={styles["types"]} aria-label={compliance.types}>
        {types.map((type) => <li key={type}><Badge>{type}</Badge></li>)}
      </ul>
      {unfound.length > 0 && <p className={styles["muted"]}>{compliance.needsRule(unfound.join(", "))}</p>}
    </section>
  );
}

function Findings({ id, days }: { id: string; days: PeriodDays }) {
  const compliance = complianceTexts;
  const stats = useBundleStats(id, days);
  const { data } = stats;
  if (stats.error && data === undefined) return <ErrorState error={stats.error} onRetry={() => void stats.refetch()} />;
  if (data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
  return (
    <section>
      <h3 className={styles["title"]}>{compliance.findings} <span className={styles["muted"]}>{compliance.periods[days]}</span></h3>
      <p>
        {compliance.findingsOf(wholeNumber(data.total_events))}{" "}
        {data.total_events > 0 && compliance.actionsOf(
          wholeNumber(data.by_action.block), wholeNumber(data.by_action.require_approval), wholeNumber(data.by_action.redact), wholeNumber(data.by_action.allow),
        )}
      </p>
      {data.total_events > 0 && (
        <div className={styles["trend"]}>
          <DayColumns
            label={compliance.trend}
            days={data.daily_trend.map(({ date: day, event_count: value }) => ({ day, value, text: compliance.dayOf(dayName(day), wholeNumber(value)) }))}
          />
        </div>
      )}
    </section>
  );
}
