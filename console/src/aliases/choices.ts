/** The values of the page's parameters. The router loads this module at the start, so it imports no queries. */
export const ALIAS_SORTS = [
  "name", "-name", "balance", "-balance", "created_at", "-created_at", "updated_at", "-updated_at",
] as const;
export const COMPARED_PERIODS = ["day", "week", "month"] as const;
