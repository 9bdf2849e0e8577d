import { getRouteApi } from "@tanstack/react-router";
import { BellRing, History, Play } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { alertTexts } from "../texts/alerts";
import { AlertForm } from "./AlertForm";
import {
  type AlertFilters, type AlertRule, type Sort, useAlertRule, useAlertRules, useDeleteAlertRule, useEvaluateAlerts, useSetAlertEnabled,
} from "./api";
import { DEFAULT_SORT, METRICS } from "./choices";
import { HistoryDialog } from "./HistoryDialog";
import { conditionOf } from "./values";

const route = getRouteApi("/alerts");
const creation: Editor = (close) => <AlertForm onDone={close} />;

/** The alert rules, with the history of one of them in a dialog. */
export function AlertsPage() {
  const alerts = alertTexts;
  const { administers } = useRights();
  const { page = 1, alert: openId, history = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useAlertRules(filters, page);
  const { open, close } = useMemo(() => ({
    open: (rule: AlertRule) => void navigate({ search: (now) => ({ ...now, alert: rule.id }) }),
    close: () => void navigate({ search: ({ alert: _, history: __, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = [filters.search, filters.metric_type, filters.enabled].some((value) => value !== undefined);
  const updateFilters = (changed: AlertFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  const opened = useOpenRow(openId, list.data?.rows, useAlertRule);
  return (
    <Page
      title={alerts.title}
      actions={administers && (
        <>
          <EvaluateButton />
          <NewRuleButton label={alerts.new} title={alerts.newTitle} editor={creation} />
        </>
      )}
      filterBar={
        <>
          <FilterField
            label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          <ChoiceFilter
            label={alerts.metric} any={alerts.anyMetric} values={METRICS} nameOf={(metric) => alerts.metrics[metric]}
            value={filters.metric_type} onChange={(metric_type) => updateFilters({ metric_type })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={alerts.title} list={list} columns={columns} rowId={(rule) => rule.id} page={page} sort={filters.sort ?? DEFAULT_SORT}
        isFiltered={isFiltered} onClear={clear} onSort={(sort) => updateFilters({ sort: sort as Sort })}
        onPage={(next) => void navigate({ search: { ...filters, page: next } })} selectedId={openId} onOpen={open}
        empty={<EmptyState icon={BellRing} title={alerts.empty} text={alerts.emptyText} />}
      />
      <HistoryDialog
        rule={opened.row} page={history} onClose={close}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, history: next }) })}
      />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function EvaluateButton() {
  const alerts = alertTexts;
  const evaluate = useEvaluateAlerts();
  return (
    <Button
      busy={evaluate.isPending}
      onClick={() => report(evaluate.mutateAsync(), (result) => toast(alerts.evaluated(result.rules_evaluated, result.triggered.map((rule) => rule.rule_name))))}
    >
      <Play aria-hidden />{alerts.evaluate}
    </Button>
  );
}

function columnsOf(administers: boolean, open: (rule: AlertRule) => void): Column<AlertRule>[] {
  const { rules } = texts;
  const alerts = alertTexts;
  const columns: Column<AlertRule>[] = [
    {
      id: "name", header: rules.name, meta: { width: "46%", sort: "name" },
      cell: ({ row: { original: rule } }) => (
        <RuleName
          name={rule.name} detail={conditionOf(rule)}
          opener={{ id: rule.id, label: alerts.historyOf(rule.name), onOpen: () => open(rule) }}
        />
      ),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    {
      id: "triggered", header: alerts.lastTriggered, meta: { hideBelow: "tablet", sort: "-last_triggered_at" },
      cell: ({ row: { original: { last_triggered_at: at } } }) => (at === null ? alerts.never : <Time at={at} as="relative" />),
    },
    {
      id: "notifies", header: alerts.notifies, meta: { hideBelow: "desk" },
      cell: ({ row: { original: { webhook_url: url } } }) => (url === null ? texts.none : <span title={url}>{hostOf(url)}</span>),
    },
  ];
  if (administers) columns.push(actionsColumn((rule) => <Actions rule={rule} onOpen={() => open(rule)} />));
  return columns;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function Actions({ rule, onOpen }: { rule: AlertRule; onOpen: () => void }) {
  const alerts = alertTexts;
  const setEnabled = useSetAlertEnabled(rule.id);
  const remove = useDeleteAlertRule(rule.id);
  return (
    <RuleMenu
      name={rule.name} enabled={rule.enabled} editor={(close) => <AlertForm rule={rule} onDone={close} />} deleteText={alerts.deleteText}
      onToggle={() => setEnabled.mutateAsync(!rule.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={onOpen}><History aria-hidden size={15} />{alerts.showHistory}</MenuItem>
    </RuleMenu>
  );
}
