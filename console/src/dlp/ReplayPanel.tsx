import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { SelectField, TextField } from "../parts/fields";
import { Panel } from "../parts/Page";
import { Fields, TrialResult, trialStyles } from "../parts/Trial";
import { dlpTexts, replayTexts, suppressionTexts } from "../texts/dlp";
import { type DlpRule, TIERS, type Tier, useDlpRules } from "./api";
import { type Suppression, useLibrary, useSuppressions } from "./customization";
import { bodyOf, changedRules, DEFAULT_REPLAYED_REQUESTS, MAX_REPLAYED_REQUESTS, type ReplayDraft, useReplay } from "./replay";
import { ReplayResult } from "./ReplayResult";

const KINDS = ["rule", "suppress"] as const;
const AGES_DAYS = [1, 7, 14, 30];

interface ReplayFields {
  kind: (typeof KINDS)[number];
  rule: string;
  becomes: Tier | "off";
  pattern: string;
  last: string;
  days: string;
}

/** Replays a change of one rule, or of one built-in pattern, on recorded requests. */
export function ReplayPanel() {
  const words = replayTexts;
  const rules = useDlpRules();
  const suppressions = useSuppressions();
  const { replay, stop } = useReplay();
  const form = useForm<ReplayFields>({
    defaultValues: { kind: "rule", rule: "", becomes: "block", pattern: "", last: String(DEFAULT_REPLAYED_REQUESTS), days: "" },
  });
  const { errors } = form.formState;
  const kind = form.watch("kind");
  const run = form.handleSubmit((fields) => {
    const draft = draftOf(fields, rules.data ?? [], suppressions.data ?? []);
    replay.mutate({ draft, recorded: { last: Number(fields.last), days: fields.days === "" ? null : Number(fields.days) } });
  });
  return (
    <div className={trialStyles["place"]}>
      <Panel title={words.draftTitle}>
        <form className={trialStyles["body"]} noValidate onSubmit={(event) => { event.preventDefault(); if (!replay.isPending) void run(); }}>
          <p className={trialStyles["text"]}>{words.draftText}</p>
          <Fields>
            <SelectField label={words.kind} {...form.register("kind")}>
              {KINDS.map((name) => <option key={name} value={name}>{words.kinds[name]}</option>)}
            </SelectField>
            {kind === "rule" && (
              <>
                <SelectField label={words.rule} fault={errors.rule?.message} {...form.register("rule", { required: words.ruleRequired, shouldUnregister: true })}>
                  <option value="">{words.chooseRule}</option>
                  {rules.data?.map((rule) => <option key={rule.id} value={rule.id}>{rule.detector_name}</option>)}
                </SelectField>
                <SelectField label={words.becomes} {...form.register("becomes")}>
                  {TIERS.map((tier) => <option key={tier} value={tier}>{dlpTexts.tiers[tier]}</option>)}
                  <option value="off">{words.off}</option>
                </SelectField>
              </>
            )}
            {kind === "suppress" && <PatternField form={form} suppressed={suppressions.data ?? []} />}
          </Fields>
          <Fields>
            <TextField
              label={words.last} inputMode="numeric" autoComplete="off" fault={errors.last?.message}
              {...form.register("last", { validate: (typed) => (/^\d+$/.test(typed) && Number(typed) >= 1 && Number(typed) <= MAX_REPLAYED_REQUESTS) || words.lastRange })}
            />
            <SelectField label={words.days} {...form.register("days")}>
              <option value="">{words.anyAge}</option>
              {AGES_DAYS.map((days) => <option key={days} value={days}>{words.dayCount(days)}</option>)}
            </SelectField>
          </Fields>
          <div className={trialStyles["line"]}>
            <Button type="submit" look="primary" busy={replay.isPending}>{words.run}</Button>
            {replay.isPending && <Button onClick={stop}>{words.stop}</Button>}
          </div>
          <TrialResult data={replay.data} error={replay.error}>
            {replay.isPending && <p className={trialStyles["muted"]}>{words.running}</p>}
            {replay.data !== undefined && <ReplayResult result={replay.data} />}
          </TrialResult>
        </form>
      </Panel>
    </div>
  );
}

function PatternField({ form, suppressed }: { form: ReturnType<typeof useForm<ReplayFields>>; suppressed: Suppression[] }) {
  const replay = replayTexts;
  const suppressions = suppressionTexts;
  const library = useLibrary();
  const isSuppressed = suppressed.some((row) => row.pattern_id === form.watch("pattern"));
  return (
    <SelectField
      label={replay.pattern} fault={form.formState.errors.pattern?.message}
      hint={form.watch("pattern") === "" ? undefined : replay.fromTo(isSuppressed ? replay.suppressed : replay.active, isSuppressed ? replay.active : replay.suppressed)}
      {...form.register("pattern", { required: suppressions.patternRequired, shouldUnregister: true })}
    >
      <option value="">{suppressions.choose}</option>
      {library.data?.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </SelectField>
  );
}

function draftOf({ kind, rule: id, becomes, pattern }: ReplayFields, rules: DlpRule[], suppressed: Suppression[]): ReplayDraft {
  const ids = suppressed.map((row) => row.pattern_id);
  if (kind === "suppress") return { suppressions: ids.includes(pattern) ? ids.filter((other) => other !== pattern) : [...ids, pattern] };
  const rule = rules.find((candidate) => candidate.id === id);
  if (rule === undefined) return {};
  const changed = becomes === "off" ? { ...bodyOf(rule), enabled: false } : { ...bodyOf(rule), enabled: true, action_tier: becomes };
  return { rules: changedRules(rules, id, changed) };
}
