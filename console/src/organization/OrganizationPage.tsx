import type { Schemas } from "../api/client";
import { useRights } from "../api/queries";
import { Page, Panel } from "../parts/Page";
import { ErrorState, errorText, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { organizationTexts } from "../texts/organization";
import { Allowlist } from "./Allowlist";
import { FLAGS, type FlagName, useSettings, useSwitchFlag } from "./api";
import { Configuration } from "./Configuration";
import { Domains } from "./Domains";
import styles from "./OrganizationPage.module.css";
import { MailTest } from "./MailTest";
import { RequestFields } from "./RequestFields";
import { SettingsForm } from "./SettingsForm";

/** The settings, feature flags, mail domains, IP allowlist, request fields and configuration of the organization. */
export function OrganizationPage() {
  const settings = useSettings();
  const { data } = settings;
  const { administers } = useRights();
  return (
    <Page title={organizationTexts.title}>
      {settings.error && data === undefined ? (
        <Panel label={organizationTexts.title}><ErrorState error={settings.error} onRetry={() => void settings.refetch()} /></Panel>
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : (
        <div className={styles["panels"]}>
          <SettingsForm settings={data} />
          <Panel title={organizationTexts.flags}>
            <ul className={styles["list"]}>
              {FLAGS.map((flag) => <Flag key={flag} flag={flag} settings={data} />)}
            </ul>
          </Panel>
          <Domains />
          <Allowlist />
          <RequestFields />
          <Configuration />
        </div>
      )}
      {administers && <MailTest />}
    </Page>
  );
}

function Flag({ flag, settings }: { flag: FlagName; settings: Schemas["Settings"] }) {
  const enabled = settings.feature_flags[flag] === true;
  const source = settings.sources[`feature_flags.${flag}`];
  const organization = organizationTexts;
  const { administers } = useRights();
  const change = useSwitchFlag();
  const { name, text } = organization.flagTexts[flag];
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <label className={styles["name"]} htmlFor={flag}>{name}</label>
        <span className={styles["muted"]} id={`${flag}-text`}>
          {text} {source !== undefined && <span className={styles["source"]}>{texts.sources[source]}</span>}
        </span>
      </span>
      <input
        id={flag} type="checkbox" role="switch" className={styles["switch"]} aria-describedby={`${flag}-text`}
        checked={change.isPending ? change.variables.enabled : enabled} disabled={!administers}
        onChange={({ target }) =>
          change.mutate({ flag, enabled: target.checked, updatedAt: settings.updated_at }, {
            onSuccess: () => toast(target.checked ? organization.flagOn(name) : organization.flagOff(name)),
            onError: (error) => toast(errorText(error), "failed"),
          })}
      />
    </li>
  );
}
