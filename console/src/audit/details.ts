/** Texts for the details of audit events. Their fields depend on the action. */
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";

/** Returns the name of a field in words: `display_name` becomes "Display name". */
export function labelOf(field: string): string {
  const known = auditTexts.detailNames[field];
  if (known !== undefined) return known;
  const words = field.replaceAll(/[_.]+/g, " ").trim();
  return words === "" ? field : words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns the text of a value without fields of its own, or null for other values. */
export function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return texts.none;
  if (typeof value === "boolean") return value ? auditTexts.yes : auditTexts.no;
  if (typeof value === "string") return value;
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 20 });
  if (Array.isArray(value) && value.every((item) => typeof item === "string" || typeof item === "number")) {
    return value.length === 0 ? texts.none : value.join(", ");
  }
  return typeof value === "object" && Object.keys(value).length === 0 ? texts.none : null;
}

/** Whether the value is the change of a field. */
export function isChange(value: unknown): value is { old: unknown; new: unknown } {
  return typeof value === "object" && value !== null && Object.keys(value).sort().join() === "new,old";
}
