/** Errors of the API in one form, whatever the form of the family (docs/errors.md). */

/** A refused or failed call. `fields` are messages by the name of the field in the body. */
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

interface Located {
  loc?: (string | number)[];
  field?: string;
  msg?: string;
  message?: string;
}

type Body = Record<string, unknown>;

/** The error in a response that is no success. */
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
  const retryAfter = Number(response.headers.get("retry-after"));
  return new ApiError(
    response.status,
    message(body) ?? (Object.keys(fields).length > 0 ? "Some fields are not valid." : `HTTP ${response.status}`),
    code(body),
    fields,
    retryAfter > 0 ? retryAfter : null,
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
