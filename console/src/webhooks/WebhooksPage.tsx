import { getRouteApi } from "@tanstack/react-router";
import { Send, Webhook as WebhookIcon } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter, EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page } from "../parts/Page";
import { EnabledBadge, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { webhookTexts } from "../texts/webhooks";
import {
  eventName, type Sort, useDeleteWebhook, useSetEnabled, useUpdateWebhook, useWebhook, useWebhooks, type Webhook, type WebhookFilters,
} from "./api";
import { DEFAULT_SORT, EVENT_TYPES } from "./choices";
import { CreateWebhook } from "./CreateWebhook";
import { DeliveriesDialog } from "./DeliveriesDialog";
import { bodyOf, WebhookForm } from "./WebhookForm";

const route = getRouteApi("/webhooks");
/** The number of event names that a row lists. It shows only the number of the other events. */
const SHOWN_EVENTS = 2;

/** The list of webhooks. A dialog shows the deliveries of the webhook that the URL names. */
export function WebhooksPage() {
  const webhooks = webhookTexts;
  const { administers } = useRights();
  const { page = 1, webhook: openId, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useWebhooks(filters, page);
  const { open, close } = useMemo(() => ({
    open: (webhook: Webhook) => void navigate({ search: (now) => ({ ...now, webhook: webhook.id }) }),
    close: () => void navigate({ search: ({ webhook: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = [filters.search, filters.event, filters.enabled].some((value) => value !== undefined);
  const updateFilters = (changed: WebhookFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  const opened = useOpenRow(openId, list.data?.rows, useWebhook);
  return (
    <Page
      title={webhooks.title} actions={administers && <CreateWebhook />}
      filterBar={
        <>
          <FilterField
            label={texts.rules.search} placeholder={webhooks.searchPlaceholder} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          <ChoiceFilter
            label={webhooks.events} any={webhooks.anyEvent} values={EVENT_TYPES} nameOf={eventName} value={filters.event}
            onChange={(event) => updateFilters({ event })}
          />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={webhooks.title} list={list} columns={columns} rowId={(webhook) => webhook.id} page={page} sort={filters.sort ?? DEFAULT_SORT}
        isFiltered={isFiltered} onClear={clear} onSort={(sort) => updateFilters({ sort: sort as Sort })}
        onPage={(next) => void navigate({ search: { ...filters, page: next } })} selectedId={openId} onOpen={open}
        empty={<EmptyState icon={WebhookIcon} title={webhooks.empty} text={webhooks.emptyText} />}
      />
      <DeliveriesDialog webhook={opened.row} onClose={close} />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (webhook: Webhook) => void): Column<Webhook>[] {
  const { rules } = texts;
  const webhooks = webhookTexts;
  const columns: Column<Webhook>[] = [
    {
      id: "name", header: rules.name, meta: { width: "46%", sort: "name" },
      cell: ({ row: { original: webhook } }) => (
        <RuleName
          name={webhook.name} detail={webhook.url}
          opener={{ id: webhook.id, label: webhooks.deliveriesOf(webhook.name), onOpen: () => open(webhook) }}
        />
      ),
    },
    {
      id: "events", header: webhooks.events, meta: { hideBelow: "tablet" },
      cell: ({ row: { original: { events } } }) => (
        <span title={events.map((event) => `${eventName(event)} (${event})`).join("\n")}>
          {webhooks.someEvents(events.slice(0, SHOWN_EVENTS).map(eventName), events.length - SHOWN_EVENTS)}
        </span>
      ),
    },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    { id: "created", header: webhooks.created, meta: { hideBelow: "desk", sort: "-created_at" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
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
  const webhooks = webhookTexts;
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
