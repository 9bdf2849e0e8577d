import { Link } from "@tanstack/react-router";
import { KeyRound } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useConfigurationEntry, useSetConfiguration } from "../api/configuration";
import { useRights } from "../api/queries";
import { useSettings } from "../organization/api";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Fact, Facts } from "../parts/Facts";
import { Panel } from "../parts/Page";
import { texts } from "../texts";
import { outpostTexts } from "../texts/outposts";

/** The entry that controls whether the policies of outposts contain providers' credentials: `sealed` or `off`. */
const CREDENTIALS = "outpost_provider_credentials";
/** The feature flag without which outposts get no policy. */
const FLAG = "outpost_enabled";

/** The settings that apply to all outposts of the organization, with the effective values. */
export function SettingsPanel({ enabled }: { enabled: boolean }) {
  const outposts = outpostTexts;
  const { administers } = useRights();
  const { data: entry } = useConfigurationEntry(CREDENTIALS);
  const { data: organization, refetch } = useSettings();
  // The list of outposts, which contains `enabled`, is loaded more often. A source of another value is not shown.
  const isOld = organization !== undefined && organization.feature_flags[FLAG] !== enabled;
  useEffect(() => {
    if (isOld) void refetch();
  }, [isOld, refetch]);
  const source = isOld ? undefined : organization?.sources[`feature_flags.${FLAG}`];
  const isSealed = entry?.value === "sealed";
  return (
    <Panel title={outposts.settings} actions={administers && entry !== undefined && <CredentialsButton isSealed={isSealed} />}>
      <Facts>
        <Fact name={outposts.feature} {...(source !== undefined && { source: texts.sources[source] })}>{enabled ? outposts.on : outposts.off} <Link to="/organization">{outposts.toFlags}</Link></Fact>
        {entry !== undefined && (
          <Fact name={outposts.credentials} source={texts.sources[entry.source]}>{isSealed ? outposts.sealed : outposts.ownEnvironment}</Fact>
        )}
      </Facts>
    </Panel>
  );
}

function CredentialsButton({ isSealed }: { isSealed: boolean }) {
  const outposts = outpostTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const set = useSetConfiguration(CREDENTIALS);
  return (
    <>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}><KeyRound aria-hidden />{isSealed ? outposts.stopSending : outposts.send}</Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} look={isSealed ? "danger" : "primary"}
        title={isSealed ? outposts.stopTitle : outposts.sendTitle} text={isSealed ? outposts.stopText : outposts.sendText}
        action={isSealed ? outposts.stopNow : outposts.sendNow} row={isSealed} run={(wasSealed) => set.mutateAsync({ value: wasSealed ? "off" : "sealed", version: "*" })}
        done={isSealed ? outposts.stopped : outposts.sent}
      />
    </>
  );
}
