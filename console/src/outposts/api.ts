/** The organization's outposts. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type Outpost = Schemas["ListedOutpost"];

export const PAGE_SIZE = 25;
const REFRESH_MS = 5_000;

export function useOutposts(page: number) {
  return useQuery({
    queryKey: ["outposts", page],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/v1/admin/outposts", { params: { query: { page, page_size: PAGE_SIZE } } })),
  });
}
