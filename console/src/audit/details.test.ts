import { expect, test } from "vitest";
import { isChange, labelOf, textOf } from "./details";

test("the name of a field is shown in words", () => {
  expect(labelOf("display_name")).toBe("Display name");
  expect(labelOf("feature_flags.dlp_enabled")).toBe("Feature flags dlp enabled");
});

test("values without fields are texts", () => {
  expect(textOf(true)).toBe("Yes");
  expect(textOf(null)).toBe("–");
  expect(textOf(["a", "b"])).toBe("a, b");
  expect(textOf([])).toBe("–");
  expect(textOf(12345)).toBe("12,345");
  expect(textOf({ a: 1 })).toBeNull();
  expect(textOf([{ a: 1 }])).toBeNull();
});

test("a change has exactly an old and a new value", () => {
  expect(isChange({ new: 1, old: null })).toBe(true);
  expect(isChange({ new: 1 })).toBe(false);
  expect(isChange(null)).toBe(false);
});
