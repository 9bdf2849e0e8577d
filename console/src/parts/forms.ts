/** Forms with values and errors of the API. */
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { ApiError } from "../api/errors";
import { errorText } from "./states";

/** Options for a form whose values come from the API. When the values are loaded again, the user's input and the error
 * messages stay. */
export const KEEP_TYPED = { keepDirtyValues: true, keepErrors: true } as const;

/** Options for resetting a form after it was saved. The new values replace the user's input and the error messages. */
export const AFTER_SUBMIT = { keepDirtyValues: false, keepErrors: false, keepFieldsRef: true } as const;

/** A decimal number without a sign. */
export const DECIMAL = /^(\d+\.?\d*|\.\d+)$/;

/** Fields of the API that forms show in another unit or in parts, with the names of the forms' fields. */
const ENTERED_AS: Readonly<Record<string, string>> = {
  token_lifetime_seconds: "token_lifetime_minutes",
  mfa_assertion_ttl_seconds: "mfa_assertion_ttl_minutes",
  cost_per_input_token: "input_price",
  cost_per_output_token: "output_price",
  allowed: "others",
};

/** Shows the error messages of a failed request at the fields that they name. Other messages are shown above the
 * form. */
export function showFaults<T extends FieldValues>(form: UseFormReturn<T>, error: unknown): void {
  const values = form.getValues();
  const faults = error instanceof ApiError ? Object.entries(error.fields) : [];
  const rest: string[] = [];
  for (const [path, message] of faults) {
    const name = fieldOf(values, path);
    if (name !== undefined) form.setError(name as Path<T>, { message });
    else rest.push(path === "" ? message : `${path}: ${message}`);
  }
  if (faults.length === 0) rest.push(errorText(error));
  if (rest.length > 0) form.setError("root", { message: rest.join(" ") });
}

/** Returns the name of the form field for the path in an error message. If the path leads to a row of a list, returns
 * the row's field of that name, or else the row's first field. */
function fieldOf(values: FieldValues, path: string): string | undefined {
  const parts = path.split(".").map((part) => (part in values ? part : ENTERED_AS[part] ?? part));
  const at = parts.findIndex((part) => part in values);
  const [name, place, ...rest] = at === -1 ? [] : parts.slice(at);
  const row: unknown = name === undefined || place === undefined ? undefined : values[name]?.[place];
  if (typeof row !== "object" || row === null) return name;
  return `${name}.${place}.${rest.find((part) => part in row) ?? Object.keys(row)[0]}`;
}
