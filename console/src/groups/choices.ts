/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
export const SORTS = ["name", "-name", "member_count", "-member_count", "created_at", "-created_at"] as const;
export const DEFAULT_SORT = "name";
