/** The sort fields of model aliases. The router loads this module at the start, so it imports no queries. */
export const ALIAS_SORTS = [
  "name", "-name", "balance", "-balance", "created_at", "-created_at", "updated_at", "-updated_at",
] as const;
