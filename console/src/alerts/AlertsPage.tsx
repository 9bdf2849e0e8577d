import { getRouteApi } from "@tanstack/react-router";
import { BellRing, History, Play } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState, errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { AlertForm } from "./AlertForm";
import { type AlertRule, useAlertRules, useDeleteAlertRule, useEvaluateAlerts, useSetAlertEnabled } from "./api";
import { HistoryDialog } from "./HistoryDialog";
import { conditionOf } from "./values";

const route = getRouteApi("/alerts");
const creation: Editor = (close) => <AlertForm onDone={close} />;

/** All alert rules, newest first, with the history of one of them in a dialog. */
export function AlertsPage() {
  const { alerts } = texts;
  const { administers } = useRights();
  const { alert: openId } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useAlertRules();
  const open = useMemo(() => (rule: AlertRule) => void navigate({ search: { alert: rule.id } }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  return (
    <Page
      title={alerts.title}
      actions={administers && (
        <>
          <EvaluateButton />
          <NewRuleButton label={alerts.new} title={alerts.newTitle} editor={creation} />
        </>
      )}
    >
      <Panel label={alerts.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={BellRing} title={alerts.empty} text={alerts.emptyText} />
        ) : (
          <DataTable label={alerts.title} columns={columns} rows={list.data} idOf={(rule) => rule.id} selectedId={openId} onOpen={open} />
        )}
      </Panel>
      <HistoryDialog rule={list.data?.find(({ id }) => id === openId)} onClose={() => void navigate({ search: {} })} />
    </Page>
  );
}

function EvaluateButton() {
  const { alerts } = texts;
  const evaluate = useEvaluateAlerts();
  return (
    <Button
      busy={evaluate.isPending}
      onClick={() => evaluate.mutate(undefined, {
        onSuccess: (result) => toast(alerts.evaluated(result.rules_evaluated, result.triggered.map((rule) => rule.rule_name))),
        onError: (error) => toast(errorText(error), "failed"),
      })}
    >
      <Play aria-hidden />{alerts.evaluate}
    </Button>
  );
}

function columnsOf(administers: boolean, open: (rule: AlertRule) => void): Column<AlertRule>[] {
  const { alerts, rules } = texts;
  const columns: Column<AlertRule>[] = [
    {
      id: "name", header: rules.name, meta: { width: "46%" },
      cell: ({ row: { original: rule } }) => (
        <RuleName
          name={rule.name} detail={conditionOf(rule)}
          opener={{ id: rule.id, label: alerts.historyOf(rule.name), onOpen: () => open(rule) }}
        />
      ),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    {
      id: "triggered", header: alerts.lastTriggered, meta: { hideBelow: "tablet" },
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
  const { alerts } = texts;
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
