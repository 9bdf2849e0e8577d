/** The system configuration: named values of the organization, and the source of each value. */
import { type UseQueryResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "./client";
import { changeOf, etagOf, invalidateSettings } from "./versions";

/** An entry, with the `ETag` of the organization's settings, which contain the configuration. */
export type ConfigurationEntry = Schemas["Entry-Output"] & { etag: string };
/** Where a value comes from. */
export type Source = ConfigurationEntry["source"];

const KEY = ["configuration"];

async function loadEntries(): Promise<ConfigurationEntry[]> {
  const result = await api.GET("/api/admin/config");
  const etag = etagOf(result.response) ?? "*";
  return (await dataOf(Promise.resolve(result))).map((entry) => ({ ...entry, etag }));
}

export function useConfiguration(): UseQueryResult<ConfigurationEntry[]> {
  return useQuery({ queryKey: KEY, queryFn: loadEntries });
}

export function useConfigurationEntry(name: string): UseQueryResult<ConfigurationEntry | undefined> {
  return useQuery({ queryKey: KEY, queryFn: loadEntries, select: (entries) => entries.find(({ key }) => key === name) });
}

/** Sets a value. The API refuses the change if somebody has changed the organization's settings since `version`. */
export function useSetConfiguration(name: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ value, version }: { value: string; version: string }) =>
      changeOf(version, (header) => api.PUT("/api/admin/config/{key}", { params: { path: { key: name }, header }, body: { value } })),
    onSettled: () => invalidateSettings(client),
  });
}
