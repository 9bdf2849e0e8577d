/** The values of the page's parameters. The router loads this module at the start, so it imports no queries. */
export const STATES = ["stopped"] as const;
export type SwitchState = (typeof STATES)[number];
