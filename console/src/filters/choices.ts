/** The types of content filters. The router loads this module at the start, so it imports no queries. */
import type { FilterType } from "./api";

export const TYPES = ["keyword_block", "topic_block", "custom_instruction"] as const satisfies readonly FilterType[];
