import { useState } from "react";
import { GroupSelect } from "../groups/GroupSelect";
import { Badge } from "../parts/Badge";
import { TextAreaField } from "../parts/fields";
import { TrialPanel, trialStyles } from "../parts/Trial";
import { filterTexts } from "../texts/filters";
import { type FilterTried, useTestFilters } from "./api";

/** Tests a text with the active filters. */
export function TestPanel() {
  const filters = filterTexts;
  const [text, setText] = useState("");
  const [group, setGroup] = useState("");
  const test = useTestFilters();
  return (
    <TrialPanel
      title={filters.testTitle} text={filters.testText} action={filters.test} busy={test.isPending}
      data={test.data} error={test.error} onRun={() => test.mutate({ text, group_id: group || null })}
      result={test.data !== undefined && <Result result={test.data} />}
    >
      <TextAreaField label={filters.text} rows={4} maxLength={100_000} value={text} onChange={({ target }) => setText(target.value)} />
      <GroupSelect label={filters.member} value={group} onChange={setGroup}>
        <option value="">{filters.nobody}</option>
      </GroupSelect>
    </TrialPanel>
  );
}

function Result({ result }: { result: FilterTried }) {
  const filters = filterTexts;
  return (
    <>
      <div className={trialStyles["line"]}>
        <Badge tone={result.blocked ? "danger" : "success"}>{result.blocked ? filters.blocked : filters.passes}</Badge>
        <span>
          {result.blocked_by !== null && `${filters.blockedBy(result.blocked_by.name)} `}
          {filters.evaluated(result.filters_evaluated)}
        </span>
      </div>
      {result.failed.length > 0 && (
        <p className={trialStyles["fault"]}>{filters.failed(result.failed.map(({ name }) => name).join(", "), result.failure ?? "")}</p>
      )}
      {result.instructions.length > 0 && (
        <>
          <h3 className={trialStyles["boxTitle"]}>{filters.instructions}</h3>
          <ul className={trialStyles["list"]}>
            {result.instructions.map(({ id, name, instruction }) => (
              <li key={id}><span className={trialStyles["name"]}>{name}</span><span className={trialStyles["muted"]}>{instruction}</span></li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
