/** The fields by which the server sorts model aliases. Apart from the queries, so that the paths need no more. */
export const ALIAS_SORTS = [
  "name", "-name", "balance", "-balance", "created_at", "-created_at", "updated_at", "-updated_at",
] as const;
