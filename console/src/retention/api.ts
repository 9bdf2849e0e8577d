/** The retention policy and the legal hold: queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf, type Schemas } from "../api/client";

/** The retention policy and the `ETag` of the organization's settings, which contain the policy. */
export type Retention = Schemas["RetentionPolicy"] & { version: string | null };
export type RetentionUpdate = Schemas["RetentionPolicyUpdate"];
export type LegalHold = Schemas["LegalHold"];

const REFRESH_MS = 30_000;

export function useRetention() {
  return useQuery({
    queryKey: ["retention", "policy"],
    refetchInterval: REFRESH_MS,
    queryFn: async (): Promise<Retention> => {
      const call = api.GET("/api/v1/admin/retention/policy");
      return { ...(await dataOf(call)), version: (await call).response.headers.get("etag") };
    },
  });
}

export function useLegalHold() {
  return useQuery({ queryKey: ["retention", "hold"], queryFn: () => dataOf(api.GET("/api/v1/admin/retention/legal-hold")) });
}

function useRetentionChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: ["retention"] }) });
}

/** Changes the policy. The API refuses the change if somebody has changed the organization's settings since the form
 * was opened. */
export function useUpdateRetention({ version }: Retention) {
  const [headers] = useState(() => (version === null ? {} : { "If-Match": version }));
  return useRetentionChange((body: RetentionUpdate) => dataOf(api.PUT("/api/v1/admin/retention/policy", { body, headers })));
}

export function useSetHold() {
  return useRetentionChange((reason: string) => dataOf(api.PUT("/api/v1/admin/retention/legal-hold", { body: { reason } })));
}

export function useReleaseHold() {
  return useRetentionChange(() => dataOf(api.DELETE("/api/v1/admin/retention/legal-hold")));
}

/** Returns the first day whose records the database still contains under a policy, and the first day of the archive.
 * Days are in UTC. */
export function firstDays({ hot, warm, coldYears }: { hot: number; warm: number; coldYears: number }): { database: Date; archive: Date } {
  const database = new Date();
  database.setUTCHours(0, 0, 0, 0);
  database.setUTCDate(database.getUTCDate() - hot);
  const archive = new Date(database);
  archive.setUTCDate(archive.getUTCDate() - warm);
  archive.setUTCFullYear(archive.getUTCFullYear() - coldYears);
  return { database, archive };
}
