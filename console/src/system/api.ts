/** The system: health of components, workers, versions, maintenance, and results of diagnostic checks. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type Status = "healthy" | "degraded" | "unhealthy" | "unknown";
export type Maintenance = Schemas["Maintenance"];
export type Finding = Schemas["Finding"];

export interface Component {
  status: Status;
  detail?: string | null;
  latency_ms?: number | null;
  pool?: { max: number; in_use: number };
  workers?: number;
  waiting_jobs?: number;
  bytes?: number;
}

export interface Worker {
  name: string;
  kind: string;
  silent_seconds: number;
  revision?: number;
  revision_lag?: number;
  active?: number;
  jobs?: boolean;
  drain?: { connected: boolean; backlog_bytes: number };
}

export interface Workers {
  status: Status;
  count?: number;
  silent?: number;
  revision_lag?: number;
  /** Only operators of the platform receive this field. */
  nodes?: Worker[];
}

const REFRESH_MS = 5_000;
const DIAGNOSIS_REFRESH_MS = 60_000;

/** The health of the system. `components` contains the components that have one status. Providers and workers are
 * returned separately, because each of them has its own status. */
export function useHealth() {
  return useQuery({
    queryKey: ["system", "health"],
    refetchInterval: REFRESH_MS,
    queryFn: async () => {
      const { status, components } = await dataOf(api.GET("/api/admin/system/health"));
      const { providers = {}, nodes, ...others } = components;
      return {
        status,
        components: others as unknown as Record<string, Component>,
        providers: Object.values(providers as unknown as Record<string, Component>).map((provider) => provider.status),
        workers: nodes as unknown as Workers,
      };
    },
  });
}

export function useVersion() {
  return useQuery({ queryKey: ["system", "version"], queryFn: () => dataOf(api.GET("/api/admin/system/version")) });
}

export function useDiagnosis() {
  return useQuery({
    queryKey: ["system", "diagnosis"],
    refetchInterval: DIAGNOSIS_REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/admin/system/diagnosis")),
  });
}

export function useMaintenance() {
  return useQuery({
    queryKey: ["system", "maintenance"],
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/admin/system/maintenance")),
  });
}

export function useSwitchMaintenance() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["MaintenanceSwitch"]) => dataOf(api.POST("/api/admin/system/maintenance", { body })),
    onSettled: () => client.invalidateQueries({ queryKey: ["system"] }),
  });
}
