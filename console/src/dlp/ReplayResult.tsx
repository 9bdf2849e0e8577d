import { Badge } from "../parts/Badge";
import { wholeNumber } from "../parts/format";
import { trialStyles } from "../parts/Trial";
import { dlpTexts, replayTexts } from "../texts/dlp";
import type { Evaluation } from "./api";
import type { Replayed } from "./replay";
import styles from "./ReplayResult.module.css";
import { TONES } from "./tones";

type Action = Evaluation["final_action"];
type Sample = Replayed["results"][number];

const ACTIONS: readonly Action[] = ["block", "prompt", "redact", "log_only", "allow"];
const SHOWN_SAMPLES = 25;

/** Shows the results of a changed policy on recorded requests, compared with the active policy. */
export function ReplayResult({ result }: { result: Replayed }) {
  const replay = replayTexts;
  if (result.samples === 0) return <p className={trialStyles["muted"]}>{replay.none}</p>;
  const changed = result.results.filter((sample) => sample.action !== sample.action_now);
  return (
    <>
      <div className={trialStyles["line"]}>
        <span>{replay.result(result.samples)}</span>
        {(["stricter", "weaker", "same"] as const).map((name) => (
          <span key={name}><strong>{wholeNumber(result.differences[name])}</strong> {replay[name]}</span>
        ))}
      </div>
      {!result.complete && <p className={trialStyles["fault"]}>{replay.incomplete}</p>}
      {result.tier_failures > 0 && <p className={trialStyles["fault"]}>{replay.failures(result.tier_failures)}</p>}
      <Totals result={result} />
      <Rules rules={result.rules} />
      <Changed samples={changed} />
    </>
  );
}

function Totals({ result: { totals, totals_now: now, totals_then: then } }: { result: Replayed }) {
  const dlp = dlpTexts;
  const replay = replayTexts;
  const shown = ACTIONS.filter((action) => totals[action] || now[action] || then[action]);
  return (
    <table className={styles["table"]}>
      <caption>{replay.totals}</caption>
      <thead>
        <tr>
          <th scope="col">{replay.action}</th>
          <th scope="col">{replay.then}</th>
          <th scope="col">{replay.now}</th>
          <th scope="col">{replay.draft}</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((action) => (
          <tr key={action} data-changed={(totals[action] ?? 0) !== (now[action] ?? 0) || undefined}>
            <th scope="row"><Badge tone={TONES[action]}>{dlp.actions[action]}</Badge></th>
            <td>{wholeNumber(then[action] ?? 0)}</td>
            <td>{wholeNumber(now[action] ?? 0)}</td>
            <td>{wholeNumber(totals[action] ?? 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Rules({ rules }: { rules: Replayed["rules"] }) {
  const replay = replayTexts;
  const changed = rules.filter((rule) => rule.samples !== rule.samples_now || rule.matches !== rule.matches_now);
  if (changed.length === 0) return null;
  return (
    <table className={styles["table"]}>
      <caption>{replay.rules}</caption>
      <thead>
        <tr><th scope="col">{replay.ruleName}</th><th scope="col">{replay.foundNow}</th><th scope="col">{replay.withChange}</th></tr>
      </thead>
      <tbody>
        {changed.map((rule, at) => (
          <tr key={at}>
            <th scope="row">{rule.rule_name}</th>
            <td>{wholeNumber(rule.samples_now)}</td>
            <td>{wholeNumber(rule.samples)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Changed({ samples }: { samples: Sample[] }) {
  const replay = replayTexts;
  if (samples.length === 0) return <p className={trialStyles["muted"]}>{replay.changedNone}</p>;
  return (
    <section aria-label={replay.changed} className={styles["changed"]}>
      <h3 className={trialStyles["boxTitle"]}>{replay.changed}</h3>
      <ul className={styles["samples"]}>
        {samples.slice(0, SHOWN_SAMPLES).map((sample) => <ChangedSample key={sample.index} sample={sample} />)}
      </ul>
      {samples.length > SHOWN_SAMPLES && <p className={trialStyles["muted"]}>{replay.changedMore(SHOWN_SAMPLES, samples.length)}</p>}
    </section>
  );
}

function ChangedSample({ sample: { action, action_now: now, matches } }: { sample: Sample }) {
  const dlp = dlpTexts;
  const replay = replayTexts;
  return (
    <li className={styles["sample"]}>
      <span className={trialStyles["line"]}>
        <Badge tone={TONES[now]}>{dlp.actions[now]}</Badge>
        <span aria-hidden>→</span>
        <Badge tone={TONES[action]}>{dlp.actions[action]}</Badge>
      </span>
      {matches.length === 0 ? (
        <span className={trialStyles["muted"]}>{replay.nothingFound}</span>
      ) : (
        <ul className={trialStyles["list"]}>
          {matches.map((match, at) => (
            <li key={at}>
              <span className={trialStyles["name"]}>{match.rule_name}</span>
              <span className={trialStyles["muted"]}>{replay.direction[match.direction]}</span>
              <q className={styles["excerpt"]}>{match.excerpt}</q>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
