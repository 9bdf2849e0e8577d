/** The organization's outposts, and whether they get providers' credentials. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type Outpost = Schemas["ListedOutpost"];

export const PAGE_SIZE = 25;
const REFRESH_MS = 5_000;
const CREDENTIALS_KEY = "outpost_provider_credentials";

export function useOutposts(page: number) {
  return useQuery({
    queryKey: ["outposts", page],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/v1/admin/outposts", { params: { query: { page, page_size: PAGE_SIZE } } })),
  });
}

/** Whether the policies of outposts hold providers' credentials: `sealed`, or `off`. */
export function useCredentialsEntry() {
  return useQuery({
    queryKey: ["configuration"],
    queryFn: () => dataOf(api.GET("/api/admin/config")),
    select: (entries) => entries.find(({ key }) => key === CREDENTIALS_KEY),
  });
}

export function useSetCredentials() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (value: "sealed" | "off") =>
      dataOf(api.PUT("/api/admin/config/{key}", { params: { path: { key: CREDENTIALS_KEY } }, body: { value } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["configuration"] }),
  });
}
