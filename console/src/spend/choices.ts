/** The values of the page's parameters. The router loads this module at the start, so it imports no queries. */
import type { Sort, SpentBy, SpendPeriod } from "./api";

export const BYS: readonly SpentBy[] = ["user", "group", "api_key"];
export const PERIODS: readonly SpendPeriod[] = ["week", "month", "quarter", "custom"];
export const SORTS: readonly Sort[] = ["cost_usd", "-cost_usd", "requests", "-requests", "tokens", "-tokens", "name", "-name"];
