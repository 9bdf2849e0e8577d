import { useRights } from "../api/queries";
import { Page } from "../parts/Page";
import { replayTexts } from "../texts/dlp";
import { DlpViews } from "./DlpViews";
import { ReplayPanel } from "./ReplayPanel";
import { SamplingPanel } from "./SamplingPanel";

/** The settings for recording requests, and a replay of a rule change on recorded requests. */
export function ReplayPage() {
  const { administers } = useRights();
  return (
    <Page title={replayTexts.title} views={<DlpViews />}>
      <SamplingPanel />
      {administers && <ReplayPanel />}
    </Page>
  );
}
