/** The organization's outposts. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { OUTPOST_SORTS } from "../sorts";

export type Outpost = Schemas["ListedOutpost"];

export const PAGE_SIZE = 25;
const REFRESH_MS = 5_000;

export type Sort = (typeof OUTPOST_SORTS)[number];

export const DEFAULT_SORT = "-seen_at";

export function useOutposts(page: number, sort: Sort) {
  return useQuery({
    queryKey: ["outposts", page, sort],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/v1/admin/outposts", { params: { query: { page, page_size: PAGE_SIZE, sort } } })),
  });
}
