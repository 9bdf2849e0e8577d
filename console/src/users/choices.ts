/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { Role, User } from "./api";

export const KINDS: readonly User["kind"][] = ["user", "service"];
export const ROLES: readonly Role[] = ["user", "auditor", "admin"];
