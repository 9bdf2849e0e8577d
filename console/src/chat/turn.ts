/** A question of this visit, with its answer or the reason why there is none. */

export interface Turn {
  question: string;
  model: string;
  answer: string;
  /** The number of the last message before the turn. */
  after: number;
  /** `settling`: the answer has ended, and the stored messages are being loaded. `refused`: nothing was stored. */
  state: "waiting" | "answering" | "settling" | "done" | "stopped" | "refused" | "failed";
  error?: unknown;
  /** What data protection did with the question, by the header of the answer. */
  dlpAction?: string | null;
}

export function isActive(turn: Turn | undefined): boolean {
  return turn !== undefined && ["waiting", "answering", "settling"].includes(turn.state);
}
