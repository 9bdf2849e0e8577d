/** Forms and the API. */
import { useEffect } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { ApiError } from "../api/errors";
import { errorText } from "./states";

/** For a form that shows values from the API: what the user has typed, and the message of a failed call, stay while the
 * values are loaded anew. */
export const KEEP_TYPED = { keepDirtyValues: true, keepErrors: true } as const;

/** For the reset of such a form after it was saved. */
export const AFTER_SUBMIT = { keepDirtyValues: false, keepErrors: false, keepFieldsRef: true } as const;

/** A decimal number without a sign. */
export const DECIMAL = /^(\d+\.?\d*|\.\d+)$/;

/** Puts the messages of a failed call at the fields that it names, and above the form where it names none of them. */
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

/** The field of the form that the path of a message names. In a list of rows it is the row's field of that name, or its
 * first. */
function fieldOf(values: FieldValues, path: string): string | undefined {
  const parts = path.split(".");
  const at = parts.findIndex((part) => part in values);
  const [name, place, ...rest] = at === -1 ? [] : parts.slice(at);
  const row: unknown = name === undefined || place === undefined ? undefined : values[name]?.[place];
  if (typeof row !== "object" || row === null) return name;
  return `${name}.${place}.${rest.find((part) => part in row) ?? Object.keys(row)[0]}`;
}

/** Lets the browser ask before it leaves a page with unsaved changes. */
export function useUnsavedWarning(unsaved: boolean): void {
  useEffect(() => {
    if (!unsaved) return undefined;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [unsaved]);
}
