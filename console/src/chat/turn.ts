/** A question that was asked since the console was opened, with its answer or the reason why there is none. */

export interface Turn {
  question: string;
  model: string;
  answer: string;
  /** The `sequence` of the last message before the turn. */
  after: number;
  /** The id of the stored question that the turn replaces. */
  replaces?: string | undefined;
  /** `settling`: the answer has ended, and the stored messages are being loaded. `refused`: nothing was stored. */
  state: "waiting" | "answering" | "settling" | "done" | "stopped" | "refused" | "failed";
  error?: unknown;
  /** The action of DLP on the question, from the response header `X-DLP-Action`. */
  dlpAction?: string | null;
}

export function isActive(turn: Turn | undefined): boolean {
  return turn !== undefined && ["waiting", "answering", "settling"].includes(turn.state);
}
