import { getRouteApi, Link } from "@tanstack/react-router";
import { PowerOff, SearchX } from "lucide-react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button, buttonClass } from "../parts/Button";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter } from "../parts/filters";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { switchTexts } from "../texts/switches";
import { type ModelSwitch, type ProviderSwitch, type SwitchFilters, type Target, useSwitches } from "./api";
import { Changes } from "./Changes";
import { STATES } from "./choices";
import { SwitchButton } from "./SwitchButton";
import styles from "./SwitchesPage.module.css";

const route = getRouteApi("/kill-switches");

/** The models by provider, with a kill switch for each, and the propagation of the latest changes. */
export function SwitchesPage() {
  const { page = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const switches = useSwitches(filters, page);
  const { data } = switches;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: SwitchFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={switchTexts.title}
      filterBar={
        <>
          <FilterField
            label={switchTexts.search} placeholder={switchTexts.search} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          <ChoiceFilter
            label={switchTexts.state} any={switchTexts.anyState} values={STATES} nameOf={(state) => switchTexts[state]} value={filters.state}
            onChange={(state) => updateFilters({ state })}
          />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <div className={styles["panels"]}>
        {switches.error && data === undefined ? (
          <Panel label={switchTexts.title}><ErrorState error={switches.error} onRetry={() => void switches.refetch()} /></Panel>
        ) : data === undefined ? (
          <Panel label={switchTexts.title}>
            <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="40%" /><Skeleton width="60%" /></div>
          </Panel>
        ) : data.total === 0 && isFiltered ? (
          <Panel label={switchTexts.title}>
            <EmptyState icon={SearchX} title={switchTexts.noneMatch} text={texts.rules.noneMatchText}>
              <Button onClick={clear}>{texts.clear}</Button>
            </EmptyState>
          </Panel>
        ) : data.total === 0 ? (
          <Panel label={switchTexts.title}>
            <EmptyState icon={PowerOff} title={switchTexts.empty} text={switchTexts.emptyText}>
              <Link to="/providers" className={buttonClass()}>{texts.navigation.providers}</Link>
            </EmptyState>
          </Panel>
        ) : (
          data.rows.map((provider) => <Provider key={provider.provider} provider={provider} />)
        )}
        {data !== undefined && (page > 1 || data.total > PAGE_SIZE) && (
          <Panel label={switchTexts.pages}>
            <Pager page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => void navigate({ search: { ...filters, page: next } })} />
          </Panel>
        )}
        <Changes />
      </div>
    </Page>
  );
}

function Provider({ provider }: { provider: ProviderSwitch }) {
  const { provider: id, provider_disabled_at: stoppedAt, provider_disabled_reason: reason, models, total_models: total } = provider;
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
      {models.length < total && <p className={styles["part"]}>{switchTexts.part(models.length, total)}</p>}
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
