import { useRights } from "../api/queries";
import { Page, Panel } from "../parts/Page";
import { ErrorState, errorText, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { FLAGS, type FlagName, useSettings, useSwitchFlag } from "./api";
import { Domains } from "./Domains";
import styles from "./OrganizationPage.module.css";
import { SettingsForm } from "./SettingsForm";

/** Name and session times, feature flags, and the mail domains that the organization has proven. */
export function OrganizationPage() {
  const settings = useSettings();
  const { data } = settings;
  return (
    <Page title={texts.organization.title}>
      {settings.error && data === undefined ? (
        <Panel label={texts.organization.title}><ErrorState error={settings.error} onRetry={() => void settings.refetch()} /></Panel>
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : (
        <div className={styles["panels"]}>
          <SettingsForm settings={data} />
          <Panel title={texts.organization.flags}>
            <ul className={styles["list"]}>
              {FLAGS.map((flag) => <Flag key={flag} flag={flag} enabled={data.feature_flags[flag] === true} />)}
            </ul>
          </Panel>
          <Domains />
        </div>
      )}
    </Page>
  );
}

function Flag({ flag, enabled }: { flag: FlagName; enabled: boolean }) {
  const { organization } = texts;
  const { administers } = useRights();
  const change = useSwitchFlag();
  const { name, text } = organization.flagTexts[flag];
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <label className={styles["name"]} htmlFor={flag}>{name}</label>
        <span className={styles["muted"]} id={`${flag}-text`}>{text}</span>
      </span>
      <input
        id={flag} type="checkbox" role="switch" className={styles["switch"]} aria-describedby={`${flag}-text`}
        checked={change.isPending ? change.variables.enabled : enabled} disabled={!administers}
        onChange={({ target }) =>
          change.mutate({ flag, enabled: target.checked }, {
            onSuccess: () => toast(target.checked ? organization.flagOn(name) : organization.flagOff(name)),
            onError: (error) => toast(errorText(error), "failed"),
          })}
      />
    </li>
  );
}
