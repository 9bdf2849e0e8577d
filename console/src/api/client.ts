/** The API's client. Its types are generated from the OpenAPI document. */
import createClient from "openapi-fetch";
import { apiError } from "./errors";
import type { components, paths } from "./schema";
import { discardToken, openSession } from "./session";
import { stepUp } from "./step-up";

export type Schemas = components["schemas"];

export const api = createClient<paths>({ baseUrl: location.origin, fetch: authorizedFetch });

/** Sends a request with the session's access token. Sends it again with a new token if the API answers 401, or if the
 * API requires a second factor and the user then verifies one. */
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

/** Whether the API refused the request because the session has not verified a second factor, although the user has
 * enrolled one. */
async function needsSecondFactor(response: Response): Promise<boolean> {
  const body = (await response.json().catch(() => null)) as { error?: string; enrollment_required?: boolean } | null;
  return body?.error === "mfa_required" && body.enrollment_required !== true;
}

export interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the data of a response. Throws ApiError. */
export async function dataOf<T>(call: Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw apiError(response, error);
  return data as T;
}

/** Returns the rows of a response, and the number of all matching rows from the header `X-Total-Count`. If the header
 * is missing, the number is that of the returned rows. Throws ApiError. */
export async function listOf<T>(call: Promise<Result<T[]>>): Promise<{ rows: T[]; total: number }> {
  const { data, error, response } = await call;
  if (!response.ok) throw apiError(response, error);
  const rows = data ?? [];
  return { rows, total: Number(response.headers.get("x-total-count") ?? rows.length) };
}
