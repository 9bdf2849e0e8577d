/** Changes that are refused if somebody else was faster. */
import { useState } from "react";

/** The header `If-Match` for the version of a row: `updated_at` in microseconds since 1970, which is its `ETag`. */
export function ifMatch(updatedAt: string): { "If-Match": string } {
  const seconds = Math.floor(Date.parse(updatedAt) / 1000);
  const fraction = /\.(\d+)/.exec(updatedAt)?.[1] ?? "";
  const microseconds = seconds * 1_000_000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return { "If-Match": `"${microseconds.toString(16)}"` };
}

/** The headers with which a form changes what it was opened with. The row may be loaded anew in the meantime. */
export function useIfMatch(row: { updated_at: string } | undefined): { "If-Match"?: string } {
  return useState(() => (row === undefined ? {} : ifMatch(row.updated_at)))[0];
}
