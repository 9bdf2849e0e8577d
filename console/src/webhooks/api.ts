/** Webhooks and their deliveries: queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";

export type Webhook = Schemas["Webhook"];
export type NewWebhook = Schemas["NewWebhook"];
export type WebhookUpdate = Schemas["WebhookUpdate"];
export type EventType = NewWebhook["events"][number];
export type Delivery = Schemas["DeliveryB"];

/** The events that a webhook can subscribe to. `webhook_test` is sent on request. */
export const EVENT_TYPES: readonly EventType[] = [
  "new_conversation", "dlp_trigger", "quota_exceeded", "usage_threshold", "bundle_state_change", "invoice_generated",
];
const REFRESH_MS = 3_000;

/** All webhooks, newest first, which are at most 500 and come at once. */
export function useWebhooks() {
  return useQuery({ queryKey: ["webhooks"], queryFn: () => dataOf(api.GET("/api/admin/webhooks/")) });
}

/** The last deliveries of a webhook, newest first. Read again every few seconds while one waits for an attempt. */
export function useDeliveries(id: string) {
  return useQuery({
    queryKey: ["webhooks", id, "deliveries"],
    refetchInterval: ({ state }) => (state.data?.some(isWaiting) ? REFRESH_MS : false),
    queryFn: async (): Promise<Delivery[]> => {
      // This path has the states of deliveries; the other one, whether they were delivered.
      const webhook = await dataOf(api.GET("/api/v1/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: id } } }));
      return "deliveries" in webhook ? webhook.deliveries : [];
    },
  });
}

export function isWaiting({ status, next_retry_at: next }: Delivery): boolean {
  return status === "pending" || (status === "failed" && next !== null);
}

function useWebhookChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["webhooks"] }),
  });
}

/** Creates a webhook, and returns its secret, which no later answer has. */
export function useCreateWebhook() {
  return useWebhookChange(async (body: NewWebhook) => {
    const created = await dataOf(api.POST("/api/admin/webhooks/", { body }));
    return "secret" in created ? created.secret : null;
  });
}

export function useUpdateWebhook(webhook: Webhook) {
  const headers = useIfMatch(webhook);
  return useWebhookChange((body: WebhookUpdate) =>
    dataOf(api.PUT("/api/admin/webhooks/{webhook_id}", { params: { path: { webhook_id: webhook.id } }, body, headers })),
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

export function useTestWebhook(id: string) {
  return useWebhookChange(() => dataOf(api.POST("/api/admin/webhooks/{webhook_id}/test", { params: { path: { webhook_id: id } } })));
}
