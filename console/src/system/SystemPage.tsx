import { Badge } from "../parts/Badge";
import { Fact, Facts } from "../parts/Facts";
import { Page, Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { systemTexts } from "../texts/system";
import { useHealth, useVersion } from "./api";
import { Components } from "./Components";
import { DiagnosisPanel } from "./DiagnosisPanel";
import { MaintenancePanel } from "./MaintenancePanel";
import styles from "./SystemPage.module.css";
import { STATUS_TONES } from "./tones";
import { WorkersPanel } from "./WorkersPanel";

/** The state of the installation: maintenance, components, workers, checks, versions. */
export function SystemPage() {
  const system = systemTexts;
  const health = useHealth();
  const { data } = health;
  return (
    <Page title={system.title} actions={data !== undefined && <Badge tone={STATUS_TONES[data.status]}>{system.statuses[data.status]}</Badge>}>
      <div className={styles["panels"]}>
        <MaintenancePanel />
        <Panel title={system.components}>
          {health.error && data === undefined ? (
            <ErrorState error={health.error} onRetry={() => void health.refetch()} />
          ) : data === undefined ? (
            <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="40%" /><Skeleton width="60%" /></div>
          ) : (
            <Components components={data.components} providers={data.providers} />
          )}
        </Panel>
        {data !== undefined && <WorkersPanel workers={data.workers} />}
        <DiagnosisPanel />
        <Versions />
      </div>
    </Page>
  );
}

function Versions() {
  const system = systemTexts;
  const { data } = useVersion();
  if (data === undefined) return null;
  return (
    <Panel title={system.versions}>
      <Facts>
        <Fact name={system.version}>{data.platform_version}</Fact>
        <Fact name={system.schemaVersion}>{data.schema_version}</Fact>
        <Fact name={system.apiVersion}>{data.api_version}</Fact>
        <Fact name={system.environment}>{data.environment}</Fact>
        {data.git_commit !== null && <Fact name={system.commit}><code>{data.git_commit}</code></Fact>}
        {data.build_date !== null && <Fact name={system.built}>{Number.isNaN(Date.parse(data.build_date)) ? data.build_date : <Time at={data.build_date} />}</Fact>}
      </Facts>
    </Panel>
  );
}
