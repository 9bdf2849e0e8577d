/** The system: health of components, workers, versions, maintenance, and results of diagnostic checks. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { changeOf, versionedOf } from "../api/versions";

export type Status = Component["status"];
export type Maintenance = Schemas["Maintenance"] & { etag: string };
export type Finding = Schemas["Finding"];

type Components = Schemas["SystemHealth"]["components"];
/** A component that has one status, with the fields of all such components. */
export type Component = Components["redis"] & Partial<Components["database"] & Components["celery_workers"] & Components["journal"]>;
export type Workers = Components["nodes"];
export type Worker = NonNullable<Workers["nodes"]>[number];

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
      const { providers, nodes: workers, ...others } = components;
      const ofOneStatus: Record<string, Component> = others;
      return { status, components: ofOneStatus, providers: Object.values(providers).map((provider) => provider.status), workers };
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
    queryFn: (): Promise<Maintenance> => versionedOf(api.GET("/api/admin/system/maintenance")),
  });
}

/** Starts or ends maintenance, or changes its message. The API refuses this if somebody else has changed the state since
 * `version`. */
export function useSwitchMaintenance() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ version, ...body }: Schemas["MaintenanceSwitch"] & { version: string }) =>
      changeOf(version, (header) => api.POST("/api/admin/system/maintenance", { params: { header }, body })),
    onSettled: () => client.invalidateQueries({ queryKey: ["system"] }),
  });
}
