import { Dialog } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { signInTexts } from "../texts/sign-in";
import { type Idp, signInUrl } from "./api";
import styles from "./SignInPage.module.css";

/** All settings of an identity provider, for reading. */
export function IdpDetails({ idp, onClose }: { idp: Idp | undefined; onClose: () => void }) {
  return (
    <Dialog open={idp !== undefined} onClose={onClose} title={idp === undefined ? "" : signInTexts.detailsOf(idp.name)} wide>
      {idp !== undefined && <Details idp={idp} />}
    </Dialog>
  );
}

function Details({ idp }: { idp: Idp }) {
  const signIn = signInTexts;
  const mapping = idp.attribute_mapping;
  return (
    <Facts>
      <Fact name={texts.rules.status}>{idp.is_active ? texts.rules.enabled : texts.rules.disabled}</Fact>
      <Fact name={signIn.entityId}>{idp.entity_id}</Fact>
      <Fact name={signIn.ssoUrl}>{idp.sso_url}</Fact>
      <Fact name={signIn.theirSloUrl}>{idp.slo_url ?? texts.none}</Fact>
      <Fact name={signIn.signInUrl}>{signInUrl(idp.id)}</Fact>
      <Fact name={signIn.emailAttribute}>{mapping?.email ?? signIn.usualAttribute}</Fact>
      <Fact name={signIn.usernameAttribute}>{mapping?.username ?? signIn.usualAttribute}</Fact>
      <Fact name={signIn.groupsAttribute}>{mapping?.groups ?? signIn.usualAttribute}</Fact>
      <Fact name={signIn.idpInitiated}>{idp.allow_idp_initiated ? signIn.yes : signIn.no}</Fact>
      <Fact name={signIn.certificate}>
        <ul className={styles["prints"]}>
          {idp.certificates.map(({ sha256, expires_at: at }) => (
            <li key={sha256}>{signIn.expires} <Time at={at} as="date" /><br /><code>{signIn.fingerprint(sha256)}</code></li>
          ))}
        </ul>
      </Fact>
      <Fact name={signIn.created}><Time at={idp.created_at} /></Fact>
      <Fact name={signIn.changed}><Time at={idp.updated_at} /></Fact>
    </Facts>
  );
}
