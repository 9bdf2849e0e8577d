import { getRouteApi } from "@tanstack/react-router";
import { Send, Webhook as WebhookIcon } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { EnabledBadge, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { useDeleteWebhook, useSetEnabled, useUpdateWebhook, useWebhooks, type Webhook } from "./api";
import { CreateWebhook } from "./CreateWebhook";
import { DeliveriesDialog } from "./DeliveriesDialog";
import { bodyOf, WebhookForm } from "./WebhookForm";

const route = getRouteApi("/webhooks");
/** Names of events that a row shows before it counts the rest. */
const SHOWN_EVENTS = 2;

/** All webhooks, newest first, with the deliveries of one of them in a dialog. */
export function WebhooksPage() {
  const { webhooks } = texts;
  const { administers } = useRights();
  const { webhook: openId } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useWebhooks();
  const open = useMemo(() => (webhook: Webhook) => void navigate({ search: { webhook: webhook.id } }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  return (
    <Page title={webhooks.title} actions={administers && <CreateWebhook />}>
      <Panel label={webhooks.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={WebhookIcon} title={webhooks.empty} text={webhooks.emptyText} />
        ) : (
          <DataTable
            label={webhooks.title} columns={columns} rows={list.data} idOf={(webhook) => webhook.id} selectedId={openId} onOpen={open}
          />
        )}
      </Panel>
      <DeliveriesDialog webhook={list.data?.find(({ id }) => id === openId)} onClose={() => void navigate({ search: {} })} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (webhook: Webhook) => void): Column<Webhook>[] {
  const { webhooks, rules } = texts;
  const columns: Column<Webhook>[] = [
    {
      id: "name", header: rules.name, meta: { width: "46%" },
      cell: ({ row: { original: webhook } }) => (
        <RuleName
          name={webhook.name} detail={webhook.url}
          opener={{ id: webhook.id, label: webhooks.deliveriesOf(webhook.name), onOpen: () => open(webhook) }}
        />
      ),
    },
    {
      id: "events", header: webhooks.events, meta: { hideBelow: "tablet" },
      cell: ({ row: { original: { events } } }) => <span title={events.join("\n")}>{webhooks.someEvents(events.slice(0, SHOWN_EVENTS), events.length - SHOWN_EVENTS)}</span>,
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    { id: "created", header: webhooks.created, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) columns.push(actionsColumn((webhook) => <Actions webhook={webhook} onOpen={() => open(webhook)} />));
  return columns;
}

function EditWebhook({ webhook, onDone }: { webhook: Webhook; onDone: () => void }) {
  const update = useUpdateWebhook(webhook);
  return (
    <WebhookForm
      webhook={webhook} onCancel={onDone}
      onSubmit={async (fields) => {
        await update.mutateAsync(bodyOf(fields));
        toast(texts.rules.saved(fields.name));
        onDone();
      }}
    />
  );
}

function Actions({ webhook, onOpen }: { webhook: Webhook; onOpen: () => void }) {
  const { webhooks } = texts;
  const setEnabled = useSetEnabled(webhook.id);
  const remove = useDeleteWebhook(webhook.id);
  return (
    <RuleMenu
      name={webhook.name} enabled={webhook.enabled} deleteText={webhooks.deleteText}
      onToggle={() => setEnabled.mutateAsync(!webhook.enabled)} onDelete={() => remove.mutateAsync(undefined)}
      editor={(close) => <EditWebhook webhook={webhook} onDone={close} />}
    >
      <MenuItem onClick={onOpen}><Send aria-hidden size={15} />{webhooks.showDeliveries}</MenuItem>
    </RuleMenu>
  );
}
