import type { FieldValues, UseFormReturn } from "react-hook-form";
import { expect, test } from "vitest";
import { ApiError } from "../api/errors";
import { showFaults } from "./forms";

/** Returns the messages that a form with these values shows by field. */
function shown(values: FieldValues, fields: Record<string, string>): Record<string, string | undefined> {
  const faults: Record<string, string | undefined> = {};
  const form = { getValues: () => values, setError: (name: string, { message }: { message?: string }) => { faults[name] = message; } };
  showFaults(form as unknown as UseFormReturn, new ApiError(422, "invalid", null, fields));
  return faults;
}

test("a message is shown at the field that it names", () => {
  expect(shown({ name: "" }, { name: "is missing" })).toEqual({ name: "is missing" });
  expect(shown({ rows: [{ id: "" }] }, { "rows.0.id": "is missing" })).toEqual({ "rows.0.id": "is missing" });
  expect(shown({ name: "" }, { other: "is unknown" })).toEqual({ root: "other: is unknown" });
});

test("a message about a value in another unit is shown at the field of the form", () => {
  expect(shown({ token_lifetime_minutes: "0" }, { token_lifetime_seconds: "is too small" })).toEqual({ token_lifetime_minutes: "is too small" });
  expect(shown({ allowed: "", others: "" }, { allowed: "is wrong" })).toEqual({ allowed: "is wrong" });
});
