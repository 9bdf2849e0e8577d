/** Export of audit events into a file, page by page. */
import { api, dataOf, type Schemas } from "../api/client";
import { paced } from "../api/paced";
import type { AuditEvent, AuditFilters } from "./api";

export const FORMATS = ["csv", "jsonl"] as const;
export type ExportFormat = (typeof FORMATS)[number];

/** The maximum number of events in one export. The browser keeps them in memory until the export is complete. */
const MAX_EVENTS = 50_000;
const PAGE_SIZE = 500;
const TYPES: Record<ExportFormat, string> = { csv: "text/csv;charset=utf-8", jsonl: "application/jsonl" };
const COLUMNS = [
  "sequence", "timestamp", "action", "outcome", "actor_type", "actor_id", "resource_type", "resource_id", "request_id", "ip",
  "target_provider", "target_model", "reason", "details", "prev_hash", "hash", "id",
] as const satisfies readonly (keyof AuditEvent)[];

export interface Exported {
  events: AuditEvent[];
  /** Whether the export reached its limit, so that later events are missing. */
  isCut: boolean;
}

/** Reads the events that match the filters, oldest first. After each page, calls `report` with the number of events so
 * far. */
export async function readEvents(filters: AuditFilters, report: (count: number) => void, signal: AbortSignal): Promise<Exported> {
  const events: AuditEvent[] = [];
  let cursor: string | null = null;
  do {
    const query: AuditFilters & { limit: number; cursor?: string } = { ...filters, limit: PAGE_SIZE, ...(cursor !== null && { cursor }) };
    const page: Schemas["AuditEventsPage"] = await paced(() => dataOf(api.GET("/v1/audit/events", { params: { query }, signal })), signal);
    events.push(...page.events);
    cursor = page.next_cursor;
    report(events.length);
  } while (cursor !== null && events.length < MAX_EVENTS);
  return { events, isCut: cursor !== null };
}

export function fileOf(events: readonly AuditEvent[], format: ExportFormat): Blob {
  const lines = format === "jsonl"
    ? events.map((event) => JSON.stringify(event))
    : [COLUMNS.join(","), ...events.map((event) => COLUMNS.map((name) => csvCell(event[name])).join(","))];
  const end = format === "csv" ? "\r\n" : "\n";
  return new Blob(lines.map((line) => line + end), { type: TYPES[format] });
}

/** Lets the browser save the file. */
export function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Returns a quoted cell. A value that a spreadsheet program would read as a formula gets an apostrophe in front. */
function csvCell(value: unknown): string {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
