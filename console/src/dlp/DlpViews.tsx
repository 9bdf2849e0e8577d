import { Link } from "@tanstack/react-router";
import { Segments } from "../parts/Segments";
import { dlpViewTexts } from "../texts/dlp";

const EXACT = { exact: true, includeSearch: false };

/** Links to the pages about DLP. */
export function DlpViews() {
  const dlpViews = dlpViewTexts;
  return (
    <Segments label={dlpViews.label}>
      <Link to="/dlp-rules" activeOptions={EXACT}>{dlpViews.rules}</Link>
      <Link to="/dlp-rules/patterns" activeOptions={EXACT}>{dlpViews.patterns}</Link>
      <Link to="/dlp-rules/suppressions" activeOptions={EXACT}>{dlpViews.suppressions}</Link>
      <Link to="/dlp-rules/replay" activeOptions={EXACT}>{dlpViews.replay}</Link>
    </Segments>
  );
}
