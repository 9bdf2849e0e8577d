/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { Role, User } from "./api";

export const KINDS: readonly User["kind"][] = ["user", "service"];
export const ROLES: readonly Role[] = ["user", "auditor", "admin"];
