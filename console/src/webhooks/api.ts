/** Webhooks and their deliveries: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import { webhookTexts } from "../texts/webhooks";
import { DEFAULT_SORT, type SORTS } from "./choices";

export type Webhook = Schemas["Webhook"];
export type NewWebhook = Schemas["NewWebhook"];
export type WebhookUpdate = Schemas["WebhookUpdate"];
export type EventType = NewWebhook["events"][number];
export type Delivery = Schemas["DeliveryB"];

/** Returns the name of an event in plain words, or its name in the API if it has no other. */
export function eventName(event: string): string {
  return (webhookTexts.eventNames as Record<string, string>)[event] ?? event;
}

const REFRESH_MS = 3_000;

export type Sort = (typeof SORTS)[number];

export interface WebhookFilters {
  search?: string | undefined;
  event?: EventType | undefined;
  enabled?: boolean | undefined;
  sort?: Sort | undefined;
}

/** A page of the webhooks. */
export function useWebhooks(filters: WebhookFilters, page: number) {
  return useQuery({
    queryKey: ["webhooks", "list", filters, page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      listOf<Webhook>(api.GET("/api/admin/webhooks/", {
        params: { query: { sort: DEFAULT_SORT, ...filters, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE } },
      })),
  });
}

/** A webhook by its id. The page needs it if the URL refers to a webhook that is not on the loaded page of the list. */
export function useWebhook(id: string | undefined) {
  return useQuery({
    queryKey: ["webhooks", "one", id],
    enabled: id !== undefined,
    queryFn: (): Promise<Webhook> => dataOf(api.GET("/api/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: id ?? "" } } })),
  });
}

/** The latest deliveries of a webhook, newest first. The query repeats every few seconds while a delivery waits for an
 * attempt. */
export function useDeliveries(id: string) {
  return useQuery({
    queryKey: ["webhooks", id, "deliveries"],
    refetchInterval: ({ state }) => (state.data?.some(isWaiting) ? REFRESH_MS : false),
    queryFn: async (): Promise<Delivery[]> => {
      // Only this path returns the states of deliveries. The other path returns only whether they were delivered.
      const webhook = await dataOf(api.GET("/api/v1/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: id } } }));
      return "deliveries" in webhook ? webhook.deliveries : [];
    },
  });
}

export function isWaiting({ status, next_retry_at: next }: Delivery): boolean {
  return status === "pending" || (status === "failed" && next !== null);
}

/** Whether the delivery failed and has no further attempt. Such a delivery can be sent again. */
export function isReplayable(delivery: Delivery): boolean {
  return delivery.status === "dead_letter" || (delivery.status === "failed" && !isWaiting(delivery));
}

function useWebhookChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["webhooks"] }),
  });
}

/** Creates a webhook, and returns its secret. No later response contains the secret. */
export function useCreateWebhook() {
  return useWebhookChange(async (body: NewWebhook) => {
    const created = await dataOf(api.POST("/api/admin/webhooks/", { body }));
    return "secret" in created ? created.secret : null;
  });
}

export function useUpdateWebhook(webhook: Webhook) {
  const header = useIfMatch(webhook);
  return useWebhookChange((body: WebhookUpdate) =>
    dataOf(api.PUT("/api/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: webhook.id }, header }, body })),
  );
}

export function useSetEnabled(id: string) {
  return useWebhookChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: id } }, body: { enabled } })),
  );
}

export function useDeleteWebhook(id: string) {
  return useWebhookChange(() => dataOf(api.DELETE("/api/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: id } } })));
}

/** Queues a new attempt of a delivery for which no further attempt is scheduled. */
export function useReplayDelivery({ id, webhook_id }: Delivery) {
  return useWebhookChange(() =>
    dataOf(api.POST("/api/v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", {
      params: { path: { webhook_id, delivery_id: id } },
    })),
  );
}

export function useTestWebhook(id: string) {
  return useWebhookChange(() => dataOf(api.POST("/api/admin/webhooks/{webhook_id}/test", { params: { path: { webhook_id: id } } })));
}
