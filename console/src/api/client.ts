/** The API's client. Its types are generated from the OpenAPI document. */
import createClient from "openapi-fetch";
import { apiError } from "./errors";
import type { components, paths } from "./schema";
import { discardToken, openSession } from "./session";
import { stepUp } from "./step-up";

export type Schemas = components["schemas"];

export const api = createClient<paths>({ baseUrl: location.origin, fetch: authorizedFetch });

/** Sends a request with the session's token; once more with a new one if it is refused, or after a second factor. */
async function authorizedFetch(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await sent(request);
  if (response.status === 401) {
    discardToken();
    return sent(again);
  }
  if (response.status === 403 && (await needsSecondFactor(response.clone())) && (await stepUp())) {
    discardToken();
    return sent(again);
  }
  return response;
}

async function sent(request: Request): Promise<Response> {
  const { access_token: token } = await openSession();
  request.headers.set("Authorization", `Bearer ${token}`);
  return fetch(request);
}

/** Whether the call needs a second factor that the user has. */
async function needsSecondFactor(response: Response): Promise<boolean> {
  const body = (await response.json().catch(() => null)) as { error?: string; enrollment_required?: boolean } | null;
  return body?.error === "mfa_required" && body.enrollment_required !== true;
}

export interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of an answer. Raises ApiError. */
export async function dataOf<T>(call: Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw apiError(response, error);
  return data as T;
}

/** The data of a list and the number of all matching rows, which some lists send as a header. */
export async function listOf<T>(call: Promise<Result<T[]>>): Promise<{ rows: T[]; total: number }> {
  const { data, error, response } = await call;
  if (!response.ok) throw apiError(response, error);
  const rows = data ?? [];
  return { rows, total: Number(response.headers.get("x-total-count") ?? rows.length) };
}
