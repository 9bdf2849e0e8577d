import { Addresses } from "../parts/Addresses";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { signInTexts } from "../texts/sign-in";
import { useServiceProvider } from "./api";
import styles from "./SignInPage.module.css";

/** The addresses of this platform, for the identity provider's administrator. */
export function ServiceProvider() {
  const signIn = signInTexts;
  const { data, error, refetch } = useServiceProvider();
  return (
    <Panel title={signIn.ours}>
      {error && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>
      ) : data.entity_id === null ? (
        <p className={styles["text"]}>{signIn.noPublicUrl}</p>
      ) : (
        <Addresses
          copyLabel={signIn.copyOf}
          rows={[
            { name: signIn.metadataUrl, value: data.entity_id },
            { name: signIn.acsUrl, value: data.acs_url ?? texts.none },
            { name: signIn.sloUrl, value: data.slo_url ?? texts.none },
          ]}
        />
      )}
    </Panel>
  );
}
