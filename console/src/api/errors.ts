/** Converts error responses to ApiError. The form of an error body depends on the path (docs/errors.md). */
import { texts } from "../texts";

/** The error of a request that failed or that the API refused. `fields` maps the path of a field in the request body to
 * its message. */
export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly fields: Readonly<Record<string, string>> = {},
    readonly retryAfterSeconds: number | null = null,
    readonly requestId: string | null = null,
  ) {
    super(message);
  }
}

/** Whether the API refused a change because somebody else has changed the resource since the sent version. */
export function isOutdated(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412;
}

interface Located {
  loc?: (string | number)[];
  field?: string;
  msg?: string;
  message?: string;
}

type Body = Record<string, unknown>;

/** Returns the error of a response that is not successful. */
export async function failure(response: Response): Promise<ApiError> {
  const text = await response.text();
  return apiError(response, parsed(text));
}

export function apiError(response: Response, body: unknown): ApiError {
  const fields: Record<string, string> = {};
  for (const fault of faults(body)) {
    const name = fault.field ?? fault.loc?.slice(1).join(".") ?? "";
    fields[name] ??= (fault.msg ?? fault.message ?? "").replace(/^Value error, /, "");
  }
  const header = Number(response.headers.get("retry-after"));
  const retryAfter = header > 0 ? header : null;
  // The administration API sends no message if a rate limit refuses a request.
  const withoutMessage = response.status === 429 ? texts.errors.limited(retryAfter) : `HTTP ${response.status}`;
  return new ApiError(
    response.status,
    message(body) ?? (Object.keys(fields).length > 0 ? texts.errors.fields : withoutMessage),
    code(body),
    fields,
    retryAfter,
    response.headers.get("x-request-id"),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isBody(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function faults(body: unknown): Located[] {
  if (!isBody(body)) return [];
  const listed = Array.isArray(body["detail"]) ? body["detail"] : body["details"];
  return Array.isArray(listed) ? (listed as Located[]) : [];
}

function message(body: unknown): string | null {
  if (!isBody(body)) return null;
  for (const value of [body["message"], body["detail"], body["error_description"]]) {
    if (typeof value === "string") return value;
  }
  return isBody(body["error"]) ? message(body["error"]) : null;
}

function code(body: unknown): string | null {
  if (!isBody(body)) return null;
  if (isBody(body["error"])) return code({ error: body["error"]["code"] });
  return typeof body["error"] === "string" ? body["error"] : null;
}
