/** The system configuration: named values of the organization, and the source of each value. */
import { type UseQueryResult, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "./client";

export type ConfigurationEntry = Schemas["Entry-Output"];
/** Where a value comes from. */
export type Source = ConfigurationEntry["source"];

const KEY = ["configuration"];
const loadEntries = () => dataOf(api.GET("/api/admin/config"));

export function useConfiguration(): UseQueryResult<ConfigurationEntry[]> {
  return useQuery({ queryKey: KEY, queryFn: loadEntries });
}

export function useConfigurationEntry(name: string): UseQueryResult<ConfigurationEntry | undefined> {
  return useQuery({ queryKey: KEY, queryFn: loadEntries, select: (entries) => entries.find(({ key }) => key === name) });
}

export function useSetConfiguration(name: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (value: string) => dataOf(api.PUT("/api/admin/config/{key}", { params: { path: { key: name } }, body: { value } })),
    // The entry `mfa_required` changes the policy for second factors, so its query is invalidated too.
    onSettled: () => Promise.all([KEY, ["mfa-policy"]].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}
