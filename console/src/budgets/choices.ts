/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { ScopeType } from "./api";

export const SCOPE_TYPES: readonly ScopeType[] = ["tenant", "group", "user", "api_key", "oauth_client"];
