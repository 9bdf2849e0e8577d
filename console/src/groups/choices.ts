/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
export const SORTS = ["name", "-name", "member_count", "-member_count", "created_at", "-created_at"] as const;
export const DEFAULT_SORT = "name";
