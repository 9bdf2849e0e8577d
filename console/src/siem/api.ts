/** Forwarding of records to a SIEM: the receiver, the state of forwarding, changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf, type Schemas } from "../api/client";
import { ifMatch, MUST_BE_NEW } from "../api/versions";

export type Siem = Schemas["Siem"];
export type SiemUpdate = Schemas["SiemUpdate"];
export type ReceiverType = NonNullable<Siem["type"]>;

export const TYPES: readonly ReceiverType[] = ["hec", "syslog_tls", "syslog_tcp", "webhook", "file"];
const REFRESH_MS = 5_000;

export function useSiem() {
  return useQuery({ queryKey: ["siem"], refetchInterval: REFRESH_MS, queryFn: () => dataOf(api.GET("/api/v1/admin/siem")) });
}

function useSiemChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: ["siem"] }) });
}

/** Pauses or resumes forwarding. */
export function useSetEnabled() {
  return useSiemChange((enabled: boolean) => dataOf(api.PUT("/api/v1/admin/siem", { body: { enabled } })));
}

/** Sets up or changes the receiver. The API refuses this if somebody else has set one up, or changed it, since the form
 * was opened. */
export function useSaveReceiver({ updated_at: updatedAt }: Siem) {
  const [header] = useState(() => (updatedAt === null ? MUST_BE_NEW : ifMatch(updatedAt)));
  return useSiemChange((body: SiemUpdate) => dataOf(api.PUT("/api/v1/admin/siem", { params: { header }, body })));
}

export function useTestSiem() {
  return useSiemChange(() => dataOf(api.POST("/api/v1/admin/siem/test")));
}
