import { type ReactNode, useEffect, useRef, useState } from "react";
import { GroupSelect } from "../groups/GroupSelect";
import { Badge, type Tone } from "../parts/Badge";
import { CheckboxField, FieldSet, TextField } from "../parts/fields";
import fieldStyles from "../parts/fields.module.css";
import { dollars, duration } from "../parts/format";
import { SearchedSelectField } from "../parts/SearchedSelect";
import { Fields, TrialPanel, trialStyles } from "../parts/Trial";
import { texts } from "../texts";
import { routingTexts } from "../texts/routing";
import { CAPABILITIES, type Capability, type ConsideredModel, type RoutingPolicy, type Simulated, useRoutingPolicy, useRoutingPolicyPage, useSimulate } from "./api";
import styles from "./SimulationPanel.module.css";

const TONES: Record<ConsideredModel["outcome"], Tone> = { selected: "success", fallback: "info", rejected: "neutral" };
const DEFAULT_INPUT_TOKENS = 1000;
const DEFAULT_OUTPUT_TOKENS = 500;

/** Simulates a policy with a request from entered values. Shows the models that the policy considers, their costs, and
 * the reason why each model is selected or rejected. */
export function SimulationPanel({ chosen, onChoose }: { chosen: string | null; onChoose: (id: string) => void }) {
  const routing = routingTexts;
  const first = usePolicyOptions(undefined);
  const named = useRoutingPolicy(chosen);
  const simulate = useSimulate();
  const [request, setRequest] = useState({
    model: "", input: String(DEFAULT_INPUT_TOKENS), output: String(DEFAULT_OUTPUT_TOKENS), group: "", capabilities: [] as Capability[],
  });
  // While the chosen policy is loaded, the panel stays, and no other policy is simulated.
  const listed = first?.rows.find(({ id }) => chosen === null || named.isError || id === chosen);
  const policy = named.data === undefined ? listed : optionOf(named.data);
  const id = policy?.id ?? (named.isError ? null : chosen);
  if (id === null) return null;
  const field = (name: "model" | "input" | "output") => ({
    value: request[name],
    onChange: ({ target }: { target: { value: string } }) => setRequest({ ...request, [name]: target.value }),
  });
  const run = () => simulate.mutate({
    policy_id: id,
    request: {
      model: request.model.trim() || null,
      estimated_input_tokens: Number(request.input),
      estimated_output_tokens: Number(request.output),
      capabilities_needed: request.capabilities,
      group_id: request.group || null,
    },
  });
  return (
    <Place at={chosen}>
      <TrialPanel
        title={routing.simulateTitle} text={routing.simulateText} action={routing.simulate} busy={simulate.isPending}
        data={simulate.data} error={simulate.error} onRun={run}
        result={simulate.data !== undefined && <Result result={simulate.data} />}
      >
        <Fields>
          <SearchedSelectField
            label={routing.policy} value={id} onChange={onChoose} useOptions={usePolicyOptions} chosen={policy ?? { id, name: texts.loading }}
          />
          <TextField label={routing.model} hint={routing.modelHint} spellCheck={false} autoCapitalize="none" maxLength={320} {...field("model")} />
          <GroupSelect label={routing.group} hint={routing.groupHint} value={request.group} onChange={(group) => setRequest({ ...request, group })}>
            <option value="">{texts.none}</option>
          </GroupSelect>
          <TextField label={routing.inputTokens} type="number" min={0} step={1} {...field("input")} />
          <TextField label={routing.outputTokens} type="number" min={0} step={1} {...field("output")} />
        </Fields>
        <FieldSet label={routing.needed}>
          <div className={fieldStyles["checks"]}>
            {CAPABILITIES.map((name) => (
              <CheckboxField
                key={name} label={routing.capabilityNames[name]} checked={request.capabilities.includes(name)}
                onChange={({ target }) => setRequest({
                  ...request,
                  capabilities: target.checked ? [...request.capabilities, name] : request.capabilities.filter((other) => other !== name),
                })}
              />
            ))}
          </div>
        </FieldSet>
      </TrialPanel>
    </Place>
  );
}

/** Returns the first policies that match, sorted by name. */
function usePolicyOptions(search: string | undefined) {
  const { data } = useRoutingPolicyPage({ search }, "name", 1);
  return data && { rows: data.rows.map(optionOf), total: data.total };
}

function optionOf({ policy_id: id, name, enabled }: RoutingPolicy) {
  return { id, name: enabled ? name : routingTexts.notInForce(name) };
}

/** Scrolls to the simulation when a policy is chosen for it in the list. */
function Place({ at, children }: { at: string | null; children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (at !== null) place.current?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return <div ref={place}>{children}</div>;
}

function Result({ result: { refusal, cost_cap_check: check, candidates } }: { result: Simulated }) {
  const routing = routingTexts;
  return (
    <>
      {refusal !== null && (
        <div className={trialStyles["line"]}>
          <Badge tone="danger">{routing.refused}</Badge>
          <span>{refusal.message}</span>
        </div>
      )}
      {check.limit_usd !== null && <p>{routing.capCheck(dollars(check.estimated_cost_usd), dollars(check.limit_usd))}</p>}
      <h3 className={trialStyles["boxTitle"]}>{routing.candidates}</h3>
      <ol className={styles["candidates"]} aria-label={routing.candidates}>
        {candidates.map((candidate) => <Candidate key={`${candidate.provider}/${candidate.model_id}`} candidate={candidate} />)}
      </ol>
    </>
  );
}

function Candidate({ candidate: { provider, model_id: id, outcome, reason, estimated_cost_usd: cost, median_latency_ms: latency } }: {
  candidate: ConsideredModel;
}) {
  const routing = routingTexts;
  return (
    <li className={styles["candidate"]}>
      <Badge tone={TONES[outcome]}>{routing.outcomes[outcome]}</Badge>
      <code className={styles["model"]}>{provider}/{id}</code>
      <span className={styles["figures"]}>
        {cost === null ? routing.noPrice : routing.cost(dollars(cost))}
        {latency !== null && ` · ${duration(latency)}`}
      </span>
      <span className={styles["reason"]}>{reason}</span>
    </li>
  );
}
