/** The retention policy and the legal hold: queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { changeOf, invalidateSettings, versionedOf } from "../api/versions";

/** The policy and the hold have the `ETag` of the organization's settings. */
export type Retention = Schemas["RetentionPolicy"] & { etag: string };
export type RetentionUpdate = Schemas["RetentionPolicyUpdate"];
export type LegalHold = Schemas["LegalHold"] & { etag: string };

const REFRESH_MS = 30_000;

export function useRetention() {
  return useQuery({
    queryKey: ["retention", "policy"],
    refetchInterval: REFRESH_MS,
    queryFn: (): Promise<Retention> => versionedOf(api.GET("/api/v1/admin/retention/policy")),
  });
}

export function useLegalHold() {
  return useQuery({ queryKey: ["retention", "hold"], queryFn: (): Promise<LegalHold> => versionedOf(api.GET("/api/v1/admin/retention/legal-hold")) });
}

function useRetentionChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => invalidateSettings(client) });
}

/** Changes the policy. The API refuses the change if somebody has changed the organization's settings since the form
 * was opened. */
export function useUpdateRetention({ etag }: Retention) {
  const [version] = useState(etag);
  return useRetentionChange((body: RetentionUpdate) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/retention/policy", { params: { header }, body })));
}

/** Sets the hold or changes its reason. The API refuses the change if somebody has changed the organization's settings
 * since the form was opened. */
export function useSetHold({ etag }: LegalHold) {
  const [version] = useState(etag);
  return useRetentionChange((reason: string) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/retention/legal-hold", { params: { header }, body: { reason } })));
}

/** Releases the hold. The API refuses this if somebody has changed the organization's settings since the page loaded
 * the hold. */
export function useReleaseHold() {
  return useRetentionChange(({ etag }: LegalHold) => changeOf(etag, (header) => api.DELETE("/api/v1/admin/retention/legal-hold", { params: { header } })));
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
