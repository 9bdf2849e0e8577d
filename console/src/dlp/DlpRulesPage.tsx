import { getRouteApi } from "@tanstack/react-router";
import { History, SearchX, ShieldCheck } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import styles from "../parts/rules.module.css";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { type DlpRule, useDeleteRule, useDlpRules, useUpdateRule } from "./api";
import { type Detector, DETECTORS } from "./detectors";
import { DlpViews } from "./DlpViews";
import { EvaluationPanel } from "./EvaluationPanel";
import { RuleForm } from "./RuleForm";
import { TONES } from "./tones";
import { VersionsDialog } from "./VersionsDialog";

const route = getRouteApi("/dlp-rules");
const creation: Editor = (close) => <RuleForm onDone={close} />;

export function DlpRulesPage() {
  const { dlp, rules: shared } = texts;
  const { administers } = useRights();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const rules = useDlpRules(filters);
  const open = useMemo(
    () => (rule: DlpRule) => void navigate({ search: (now) => ({ ...now, versions: rule.id }) }),
    [navigate],
  );
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = filters.enabled !== undefined || filters.detector !== undefined;
  const clear = () => void navigate({ search: {} });

  return (
    <Page
      title={dlp.title} views={<DlpViews />}
      actions={administers && <NewRuleButton label={dlp.new} title={dlp.newTitle} editor={creation} />}
      bar={
        <>
          <FilterSelect
            label={dlp.detector} value={filters.detector ?? ""}
            onChange={({ target }) => void navigate({ search: (now) => ({ ...now, detector: (target.value || undefined) as Detector | undefined }) })}
          >
            <option value="">{dlp.anyDetector}</option>
            {DETECTORS.map((detector) => <option key={detector} value={detector}>{dlp.detectors[detector]}</option>)}
          </FilterSelect>
          <FilterSelect
            label={shared.status} value={filters.enabled === undefined ? "" : String(filters.enabled)}
            onChange={({ target }) =>
              void navigate({ search: (now) => ({ ...now, enabled: target.value === "" ? undefined : target.value === "true" }) })}
          >
            <option value="">{shared.anyStatus}</option>
            <option value="true">{shared.enabled}</option>
            <option value="false">{shared.disabled}</option>
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={dlp.title}>
        {rules.error && rules.data === undefined ? (
          <ErrorState error={rules.error} onRetry={() => void rules.refetch()} />
        ) : rules.data?.length === 0 && isFiltered ? (
          <EmptyState icon={SearchX} title={shared.noneMatch} text={shared.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : rules.data?.length === 0 ? (
          <EmptyState icon={ShieldCheck} title={dlp.empty} text={dlp.emptyText} />
        ) : (
          <DataTable label={dlp.title} columns={columns} rows={rules.data} idOf={(rule) => rule.id} onOpen={open} stale={rules.isPlaceholderData} />
        )}
      </Panel>
      {administers && <EvaluationPanel />}
      <VersionsDialog
        rule={rules.data?.find(({ id }) => id === filters.versions)}
        onClose={() => void navigate({ search: ({ versions: _, ...rest }) => rest })}
      />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (rule: DlpRule) => void): Column<DlpRule>[] {
  const { dlp, rules } = texts;
  const columns: Column<DlpRule>[] = [
    {
      id: "name", header: rules.name, meta: { width: "40%" },
      cell: ({ row }) => <Name rule={row.original} onOpen={() => open(row.original)} />,
    },
    { id: "action", header: rules.action, cell: ({ row }) => <Badge tone={TONES[row.original.action_tier]}>{dlp.tiers[row.original.action_tier]}</Badge> },
    { id: "detector", header: dlp.detector, meta: { hideBelow: "tablet" }, cell: ({ row }) => dlp.detectors[row.original.detector_type] },
    { id: "entity", header: dlp.entityType, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code className={styles["entity"]} title={row.original.entity_type}>{row.original.entity_type}</code> },
    { id: "status", header: rules.status, meta: { hideBelow: "tablet" }, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((rule) => <Actions rule={rule} onOpen={() => open(rule)} />));
  return columns;
}

/** The name, and what the rule looks for: its pattern, or its names. */
function Name({ rule, onOpen }: { rule: DlpRule; onOpen: () => void }) {
  const { dlp } = texts;
  const { detector_name: name, detector_type: detector, config_json: config } = rule;
  const pattern = config["pattern"];
  const names = config["labels"] ?? config["entities"];
  const detail = typeof pattern === "string" ? pattern
    : Array.isArray(names) && names.length > 0 ? names.join(", ")
    : detector === "regex" ? dlp.builtIn : dlp.allEntities;
  const opener = { id: rule.id, label: texts.versions.open(name), onOpen };
  return <RuleName name={name} detail={detail} code={typeof pattern === "string"} opener={opener} />;
}

function Actions({ rule, onOpen }: { rule: DlpRule; onOpen: () => void }) {
  const update = useUpdateRule(rule.id);
  const remove = useDeleteRule(rule.id);
  return (
    <RuleMenu
      name={rule.detector_name} enabled={rule.enabled} editor={(close) => <RuleForm rule={rule} onDone={close} />}
      onToggle={() => update.mutateAsync({ enabled: !rule.enabled })} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={onOpen}><History aria-hidden size={15} />{texts.versions.show}</MenuItem>
    </RuleMenu>
  );
}
