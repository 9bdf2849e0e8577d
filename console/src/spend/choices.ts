/** The values of the page's parameters. The router loads this module at the start, so it imports no queries. */
import type { AliasPeriod, AliasSort, Sort, SpendPeriod, SpendView } from "./api";

export const VIEWS: readonly SpendView[] = ["user", "group", "api_key", "model_alias"];
export const PERIODS: readonly SpendPeriod[] = ["week", "month", "quarter", "custom"];
export const ALIAS_PERIODS: readonly AliasPeriod[] = ["week", "month"];
export const SORTS: readonly Sort[] = ["cost_usd", "-cost_usd", "requests", "-requests", "tokens", "-tokens", "name", "-name"];
export const ALIAS_SORTS: readonly AliasSort[] = ["cost_usd", "-cost_usd", "requests", "-requests", "errors", "-errors", "name", "-name"];
