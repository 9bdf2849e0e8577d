/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { Bundle, Framework } from "./api";

export const PERIODS_DAYS = [7, 30, 90, 365] as const;
export const FRAMEWORKS: readonly Framework[] = [
  "SOC2", "HIPAA", "GDPR", "PCI-DSS", "ISO27001", "NIST-800-53", "CCPA", "GLBA", "FERPA", "EU-AI-ACT", "SOX", "FedRAMP",
];
export const STATES: readonly Bundle["state"][] = ["active", "archived"];
export const SORTS = [
  "name", "-name", "regulatory_framework", "-regulatory_framework", "updated_at", "-updated_at",
] as const;
export const DEFAULT_SORT = "name";
