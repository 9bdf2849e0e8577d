/** Optimistic locking with `If-Match`: the API refuses a change if the resource has changed since it was read. */
import type { QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { dataOf, type Result } from "./client";
import { isOutdated } from "./errors";

/** Maps each version that this page has replaced to the next version. Two forms on a page can edit the same resource.
 * After one form is saved, the other form sends the next version, so the API does not refuse its change. */
const successors = new Map<string, string>();

/** The queries of the settings that have the version of the organization. */
const ORGANIZATION_QUERIES = ["organization", "configuration", "mfa-policy", "session-policy", "dlp-sampling", "retention"];

/** Loads all settings of the organization again. A change of one of them changes the version of all. */
export function invalidateSettings(client: QueryClient): Promise<unknown> {
  return Promise.all(ORGANIZATION_QUERIES.map((name) => client.invalidateQueries({ queryKey: [name] })));
}

/** The header with the version that the user saw. It is a required parameter of changes, so a caller cannot omit it. */
export interface IfMatch {
  "If-Match": string;
}

/** The header with which the API creates a resource, and refuses the request if the resource exists. */
export const MUST_BE_NEW = { "if-none-match": "*" } as const;

/** Returns the header `If-Match` for a row. Its `ETag` is `updated_at` in microseconds since 1970, in hexadecimal. */
export function ifMatch(updatedAt: string): IfMatch {
  const seconds = Math.floor(Date.parse(updatedAt) / 1000);
  const fraction = /\.(\d+)/.exec(updatedAt)?.[1] ?? "";
  const microseconds = seconds * 1_000_000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return { "If-Match": `"${microseconds.toString(16)}"` };
}

/** Returns the data of a response with its `ETag`, or with `*` if the response has none. Throws ApiError. */
export async function versionedOf<T>(call: Promise<Result<T>>): Promise<T & { etag: string }> {
  const result = await call;
  return { ...(await dataOf(Promise.resolve(result))), etag: etagOf(result.response) ?? "*" };
}

/** Sends a change of the resource with this version. The API refuses the change if somebody else has changed the
 * resource. Throws ApiError. */
export async function changeOf<T>(version: string, change: (header: IfMatch) => Promise<Result<T>>): Promise<T> {
  let before = version;
  for (let next = successors.get(before); next !== undefined; next = successors.get(before)) before = next;
  const result = await change({ "If-Match": before });
  const data = await dataOf(Promise.resolve(result));
  const after = etagOf(result.response);
  if (after !== null && after !== before) successors.set(before, after);
  return data;
}

/** Sends a change of one field that replaces changes by others too. If nobody has changed the resource since `version`,
 * other forms of the page can still be saved after it. Throws ApiError. */
export async function switchOf<T>(version: string, change: (header: Partial<IfMatch>) => Promise<Result<T>>): Promise<T> {
  try {
    return await changeOf(version, change);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    return dataOf(change({}));
  }
}

/** Returns the `ETag` of a response as a strong tag. */
export function etagOf(response: Response): string | null {
  return response.headers.get("etag")?.replace(/^W\//, "") ?? null;
}

export interface FormVersion {
  version: string;
  isRefused: boolean;
  accept: () => void;
}

/** Returns the version whose values a form shows. While the form has unsaved edits, this version stays the same, even
 * if `current` changes. Call `accept` if the API refused the change: the user has seen the message, so the next save
 * replaces the current version. */
export function useFormVersion(current: string, dirtyFields: object): FormVersion {
  // Do not use the form's `isDirty`: it is false for a moment whenever values are loaded again.
  const isDirty = Object.keys(dirtyFields).length > 0;
  const [version, setVersion] = useState<string | null>(current);
  useEffect(() => {
    if (!isDirty) setVersion(current);
  }, [isDirty, current]);
  return { version: version ?? current, isRefused: version === null, accept: () => setVersion(null) };
}

/** Returns a row as it was at the first render, even if the page loads it again. An action in a dialog therefore sends
 * the version that the user saw when the dialog opened. `change` sends the action with this row. After the action, or if
 * the API refused it because of the version, the hook returns the row that is loaded next. */
export function useKept<Row>(current: Row): { kept: Row; change: <T>(send: (row: Row) => Promise<T>) => Promise<T> } {
  const [kept, setKept] = useState(current);
  const [isReplaced, setReplaced] = useState(false);
  if (isReplaced && current !== kept) {
    setKept(current);
    setReplaced(false);
  }
  async function change<T>(send: (row: Row) => Promise<T>): Promise<T> {
    try {
      const result = await send(kept);
      setReplaced(true);
      return result;
    } catch (error) {
      if (isOutdated(error)) setReplaced(true);
      throw error;
    }
  }
  return { kept, change };
}

/** Returns the header `If-Match` with the version of the row at the first render. The version stays the same if the row
 * is loaded again. */
export function useIfMatch(row: { updated_at: string }): IfMatch;
/** For a form that also creates rows: there is no version of a new row. */
export function useIfMatch(row: { updated_at: string } | undefined): Partial<IfMatch>;
export function useIfMatch(row: { updated_at: string } | undefined): Partial<IfMatch> {
  return useState(() => (row === undefined ? {} : ifMatch(row.updated_at)))[0];
}
