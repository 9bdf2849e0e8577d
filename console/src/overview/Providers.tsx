import { Badge, type Tone } from "../parts/Badge";
import { Panel } from "../parts/Page";
import { errorText, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { type ProviderHealth, useProviders } from "./api";
import styles from "./Providers.module.css";

const TONES: Record<string, Tone> = { healthy: "success", degraded: "warning", unreachable: "danger" };

/** The organization's providers and their health. */
export function Providers() {
  const providers = useProviders();
  const listed = providers.data?.providers;
  return (
    <Panel title={texts.overview.providers}>
      {providers.error && listed === undefined && <p className={styles["none"]} role="alert">{errorText(providers.error)}</p>}
      {listed?.length === 0 && <p className={styles["none"]}>{texts.overview.noProviders}</p>}
      <ul className={styles["list"]}>
        {listed === undefined && !providers.error && [0, 1].map((row) => <li key={row} className={styles["row"]}><Skeleton width="60%" /></li>)}
        {listed?.map((provider) => (
          <li key={provider.id} className={styles["row"]}>
            <span className={styles["name"]}>{provider.name}</span>
            <Health provider={provider} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The result of the last health check, or the status of the provider if it is not active. */
function Health({ provider: { status, health_check_status: health } }: { provider: ProviderHealth }) {
  if (status !== "active") return <Badge>{texts.overview.stateOf(status)}</Badge>;
  return <Badge tone={TONES[health] ?? "neutral"}>{texts.overview.healthOf(health)}</Badge>;
}
