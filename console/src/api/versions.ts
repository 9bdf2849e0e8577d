/** Changes that are refused if somebody else was faster. */
import { useEffect, useState } from "react";
import { dataOf, type Result } from "./client";

/** For a version that this page itself has changed, the one that it made of it. So a change of one part of a resource
 * does not count as somebody else's in the form of another part. */
const successors = new Map<string, string>();

/** The header `If-Match` for the version of a row: `updated_at` in microseconds since 1970, which is its `ETag`. */
export function ifMatch(updatedAt: string): { "If-Match": string } {
  const seconds = Math.floor(Date.parse(updatedAt) / 1000);
  const fraction = /\.(\d+)/.exec(updatedAt)?.[1] ?? "";
  const microseconds = seconds * 1_000_000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return { "If-Match": `"${microseconds.toString(16)}"` };
}

/** The data of an answer, with its version. */
export async function versionedOf<T>(call: Promise<Result<T>>): Promise<T & { etag: string }> {
  const result = await call;
  return { ...(await dataOf(Promise.resolve(result))), etag: etagOf(result.response) ?? "*" };
}

/** Makes a change of what has this version. It is refused if somebody else has changed it. */
export async function changeOf<T>(version: string, change: (headers: { "If-Match": string }) => Promise<Result<T>>): Promise<T> {
  let before = version;
  for (let next = successors.get(before); next !== undefined; next = successors.get(before)) before = next;
  const result = await change({ "If-Match": before });
  const data = await dataOf(Promise.resolve(result));
  const after = etagOf(result.response);
  if (after !== null && after !== before) successors.set(before, after);
  return data;
}

function etagOf(response: Response): string | null {
  return response.headers.get("etag")?.replace(/^W\//, "") ?? null;
}

export interface FormVersion {
  version: string;
  isRefused: boolean;
  accept: () => void;
}

/** The version of which a form shows the values. While the form is edited, `current` may be loaded anew. `accept` is
 * called after a refusal: the user has been told, and the next attempt replaces what is current then. */
export function useFormVersion(current: string, dirtyFields: object): FormVersion {
  // Not the form's `isDirty`, which is false for a moment whenever values are loaded anew.
  const isDirty = Object.keys(dirtyFields).length > 0;
  const [version, setVersion] = useState<string | null>(current);
  useEffect(() => {
    if (!isDirty) setVersion(current);
  }, [isDirty, current]);
  return { version: version ?? current, isRefused: version === null, accept: () => setVersion(null) };
}

/** The headers with which a form changes what it was opened with. The row may be loaded anew in the meantime. */
export function useIfMatch(row: { updated_at: string } | undefined): { "If-Match"?: string } {
  return useState(() => (row === undefined ? {} : ifMatch(row.updated_at)))[0];
}
