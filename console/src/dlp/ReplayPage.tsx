import { useRights } from "../api/queries";
import { Page } from "../parts/Page";
import { texts } from "../texts";
import { DlpViews } from "./DlpViews";
import { ReplayPanel } from "./ReplayPanel";
import { SamplingPanel } from "./SamplingPanel";

/** Recorded requests, and what a change of the rules would do with them. */
export function ReplayPage() {
  const { administers } = useRights();
  return (
    <Page title={texts.replay.title} views={<DlpViews />}>
      <SamplingPanel />
      {administers && <ReplayPanel />}
    </Page>
  );
}
