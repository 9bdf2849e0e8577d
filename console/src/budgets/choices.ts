/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { ScopeType } from "./api";

export const SCOPE_TYPES: readonly ScopeType[] = ["tenant", "group", "user", "api_key", "oauth_client"];
