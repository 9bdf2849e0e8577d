/** The values of the filters of the pages of MCP servers. The router loads this module at the start, so it imports no
 * queries. */
import type { Schemas } from "../api/client";

export type ToolStatus = Schemas["McpToolSummary"]["status"];
export type SubjectType = Schemas["AccessSubject"]["subject_type"];

export const TOOL_STATUSES: readonly ToolStatus[] = ["quarantined", "approved", "rejected"];
export const SUBJECT_TYPES: readonly SubjectType[] = ["group", "user", "api_key", "oauth_client"];
export const OUTCOMES = ["success", "error", "refused", "cancelled"] as const;
