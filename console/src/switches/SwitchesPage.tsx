import { Link } from "@tanstack/react-router";
import { PowerOff } from "lucide-react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { buttonClass } from "../parts/Button";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { switchTexts } from "../texts/switches";
import { type ModelSwitch, type ProviderSwitch, type Target, useSwitches } from "./api";
import { Changes } from "./Changes";
import { SwitchButton } from "./SwitchButton";
import styles from "./SwitchesPage.module.css";

/** All models by provider, with a kill switch for each, and the propagation of the latest changes. */
export function SwitchesPage() {
  const switches = useSwitches();
  const { data } = switches;
  return (
    <Page title={switchTexts.title}>
      <div className={styles["panels"]}>
        {switches.error && data === undefined ? (
          <Panel label={switchTexts.title}><ErrorState error={switches.error} onRetry={() => void switches.refetch()} /></Panel>
        ) : data === undefined ? (
          <Panel label={switchTexts.title}>
            <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="40%" /><Skeleton width="60%" /></div>
          </Panel>
        ) : data.length === 0 ? (
          <Panel label={switchTexts.title}>
            <EmptyState icon={PowerOff} title={switchTexts.empty} text={switchTexts.emptyText}>
              <Link to="/providers" className={buttonClass()}>{texts.navigation.providers}</Link>
            </EmptyState>
          </Panel>
        ) : (
          data.map((provider) => <Provider key={provider.provider} provider={provider} />)
        )}
        <Changes />
      </div>
    </Page>
  );
}

function Provider({ provider }: { provider: ProviderSwitch }) {
  const { provider: id, provider_disabled_at: stoppedAt, provider_disabled_reason: reason, models } = provider;
  return (
    <Panel
      title={id}
      actions={<Switch target={{ provider: id }} name={id} stopped={stoppedAt !== null} whole />}
    >
      {stoppedAt !== null && <p className={styles["whole"]}><Stopped at={stoppedAt} reason={reason} /></p>}
      {models.length === 0 ? (
        <p className={styles["none"]}>{switchTexts.noModels}</p>
      ) : (
        <ul className={styles["models"]}>
          {models.map((model) => <Model key={model.id} model={model} whole={stoppedAt !== null} />)}
        </ul>
      )}
    </Panel>
  );
}

function Model({ model, whole }: { model: ModelSwitch; whole: boolean }) {
  const name = model.display_name ?? model.model_id;
  return (
    <li className={styles["model"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]} title={name}>{name}</span>
        {name !== model.model_id && <code className={styles["id"]}>{model.model_id}</code>}
      </span>
      {model.kill_switch_disabled_at !== null ? (
        <Stopped at={model.kill_switch_disabled_at} reason={model.disabled_reason} />
      ) : (
        <Badge tone={model.is_active ? "success" : "neutral"}>{model.is_active ? switchTexts.serving : switchTexts.inactive}</Badge>
      )}
      {!whole && <Switch target={{ model }} name={name} stopped={model.kill_switch_active} />}
    </li>
  );
}

function Stopped({ at, reason }: { at: string; reason: ModelSwitch["disabled_reason"] }) {
  return (
    <span className={styles["stopped"]}>
      <Badge tone="danger">{switchTexts.stopped}</Badge>
      <span className={styles["since"]}>
        {reason !== null && `${switchTexts.reasons[reason]}, `}<Time at={at} as="relative" />
      </span>
    </span>
  );
}

function Switch({ target, name, stopped, whole = false }: { target: Target; name: string; stopped: boolean; whole?: boolean }) {
  const { administers } = useRights();
  return administers ? <SwitchButton target={target} name={name} stopped={stopped} whole={whole} /> : null;
}
