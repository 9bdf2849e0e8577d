import { getRouteApi } from "@tanstack/react-router";
import { History, ShieldCheck } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import styles from "../parts/rules.module.css";
import { EmptyState } from "../parts/states";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { dlpTexts, versionTexts } from "../texts/dlp";
import { type DlpRule, type RuleFilters, type RuleSort, useDeleteRule, useDlpRule, useDlpRulePage, useSetRuleEnabled } from "./api";
import { DETECTORS } from "./detectors";
import { DlpViews } from "./DlpViews";
import { EvaluationPanel } from "./EvaluationPanel";
import { RuleForm } from "./RuleForm";
import { TONES } from "./tones";
import { VersionsDialog } from "./VersionsDialog";

const route = getRouteApi("/dlp-rules");
const creation: Editor = (close) => <RuleForm onDone={close} />;

export function DlpRulesPage() {
  const dlp = dlpTexts;
  const { administers } = useRights();
  const { page = 1, sort = "created_at", versions, version_page: versionPage = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useDlpRulePage(filters, sort, page);
  const { open, close } = useMemo(() => ({
    open: (rule: DlpRule) => void navigate({ search: (now) => ({ ...now, versions: rule.id }) }),
    close: () => void navigate({ search: ({ versions: _, version_page: __, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: RuleFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  const opened = useOpenRow(versions, list.data?.rows, useDlpRule);

  return (
    <Page
      title={dlp.title} views={<DlpViews />}
      actions={administers && <NewRuleButton label={dlp.new} title={dlp.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={dlp.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <ChoiceFilter
            label={dlp.detector} any={dlp.anyDetector} values={DETECTORS} nameOf={(detector) => dlp.detectors[detector]}
            value={filters.detector} onChange={(detector) => updateFilters({ detector })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={dlp.title} list={list} columns={columns} rowId={(rule) => rule.id} page={page} sort={sort} isFiltered={isFiltered} onClear={clear}
        selectedId={versions} onOpen={open}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as RuleSort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={ShieldCheck} title={dlp.empty} text={dlp.emptyText} />}
      />
      {administers && <EvaluationPanel />}
      <VersionsDialog
        rule={opened.row} page={versionPage} onClose={close}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, version_page: next }) })}
      />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (rule: DlpRule) => void): Column<DlpRule>[] {
  const { rules } = texts;
  const dlp = dlpTexts;
  const columns: Column<DlpRule>[] = [
    {
      id: "name", header: rules.name, meta: { width: "40%", sort: "detector_name" },
      cell: ({ row }) => <Name rule={row.original} onOpen={() => open(row.original)} />,
    },
    { id: "action", header: rules.action, meta: { sort: "action_tier" }, cell: ({ row }) => <Badge tone={TONES[row.original.action_tier]}>{dlp.tiers[row.original.action_tier]}</Badge> },
    { id: "detector", header: dlp.detector, meta: { hideBelow: "tablet", sort: "detector_type" }, cell: ({ row }) => dlp.detectors[row.original.detector_type] },
    { id: "entity", header: dlp.entityType, meta: { hideBelow: "tablet", sort: "entity_type" }, cell: ({ row }) => <code className={styles["entity"]} title={row.original.entity_type}>{row.original.entity_type}</code> },
    { id: "status", header: rules.status, meta: { hideBelow: "tablet" }, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
  ];
  if (administers) columns.push(actionsColumn((rule) => <Actions rule={rule} onOpen={() => open(rule)} />));
  return columns;
}

/** Shows the name of a rule, and the pattern, labels or entity types that the rule looks for. */
function Name({ rule, onOpen }: { rule: DlpRule; onOpen: () => void }) {
  const dlp = dlpTexts;
  const { detector_name: name, detector_type: detector, config_json: config } = rule;
  const pattern = config["pattern"];
  const names = config["labels"] ?? config["entities"];
  const detail = typeof pattern === "string" ? pattern
    : Array.isArray(names) && names.length > 0 ? names.join(", ")
    : detector === "regex" ? dlp.builtIn : dlp.allEntities;
  const opener = { id: rule.id, label: versionTexts.open(name), onOpen };
  return <RuleName name={name} detail={detail} code={typeof pattern === "string"} opener={opener} />;
}

function Actions({ rule, onOpen }: { rule: DlpRule; onOpen: () => void }) {
  const setEnabled = useSetRuleEnabled(rule.id);
  const remove = useDeleteRule(rule.id);
  return (
    <RuleMenu
      name={rule.detector_name} enabled={rule.enabled} editor={(close) => <RuleForm rule={rule} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!rule.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={onOpen}><History aria-hidden size={15} />{versionTexts.show}</MenuItem>
    </RuleMenu>
  );
}
