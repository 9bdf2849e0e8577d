/** The detectors of DLP rules. The router loads this module at the start, so it imports no queries. */
import type { Schemas } from "../api/client";

export type Detector = Schemas["DlpRule"]["detector_type"];

export const DETECTORS: readonly Detector[] = ["regex", "ner", "llm"];
