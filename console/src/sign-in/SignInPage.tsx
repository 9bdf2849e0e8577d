import { Page } from "../parts/Page";
import { signInTexts } from "../texts/sign-in";
import { IdentityProviders } from "./IdentityProviders";
import { MfaForm } from "./MfaForm";
import { Provisioning } from "./Provisioning";
import { ServiceProvider } from "./ServiceProvider";
import { SessionForm } from "./SessionForm";
import styles from "./SignInPage.module.css";

/** The settings for signing in to the organization: single sign-on, provisioning, second factors and sessions. */
export function SignInPage() {
  return (
    <Page title={signInTexts.title}>
      <div className={styles["panels"]}>
        <IdentityProviders />
        <ServiceProvider />
        <Provisioning />
        <MfaForm />
        <SessionForm />
      </div>
    </Page>
  );
}
