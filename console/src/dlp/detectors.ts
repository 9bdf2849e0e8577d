/** What a DLP rule finds by. Apart from the queries, because the router needs it at the first load. */
import type { Schemas } from "../api/client";

export type Detector = Schemas["DlpRule"]["detector_type"];

export const DETECTORS: readonly Detector[] = ["regex", "ner", "llm"];
