/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
export const PERIODS_DAYS = [7, 30, 90, 365] as const;
