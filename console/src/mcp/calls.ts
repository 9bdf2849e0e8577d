/** The details of the audit event of a call of a tool. */
import type { AuditEvent } from "../audit/api";

export interface Call {
  server: string;
  tool: string | null;
  definitionHash: string | null;
  argumentsDigest: string | null;
  status: number | null;
  isError: boolean;
  latencyMs: number | null;
  upstreamMs: number | null;
  resultBytes: number | null;
  dlpAction: string | null;
  apiKeyId: string | null;
  rules: readonly unknown[];
}

/** Returns the typed details. Missing details, and those of another type, are null. */
export function callOf({ details }: AuditEvent): Call {
  const text = (name: string) => (typeof details[name] === "string" ? details[name] : null);
  const number = (name: string) => (typeof details[name] === "number" ? details[name] : null);
  return {
    server: text("server") ?? "",
    tool: text("tool"),
    definitionHash: text("definition_hash"),
    argumentsDigest: text("arguments_digest"),
    status: number("status"),
    isError: details["is_error"] === true,
    latencyMs: number("latency_ms"),
    upstreamMs: number("upstream_ms"),
    resultBytes: number("result_bytes"),
    dlpAction: text("dlp_action"),
    apiKeyId: text("api_key_id"),
    rules: Array.isArray(details["rules"]) ? details["rules"] : [],
  };
}
