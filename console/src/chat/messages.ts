/** The selection of the messages that a conversation shows. */
import type { Message } from "./api";
import { isActive, type Turn } from "./turn";

/** Returns the stored messages to show, and the turn if it is shown after them. While an answer is being written, its
 * stored messages are incomplete, so the turn is shown instead of them. Afterwards, the turn is shown only if none of
 * its messages is stored. If the turn should have replaced a question and failed, it is shown after this question. */
export function shownMessages(stored: readonly Message[], turn: Turn | undefined): { messages: readonly Message[]; turn: Turn | undefined } {
  if (turn === undefined) return { messages: stored, turn };
  const before = stored.filter(({ sequence }) => sequence <= turn.after);
  if (isActive(turn)) return { messages: before, turn };
  const isUnstored = turn.replaces === undefined
    ? before.length === stored.length
    : turn.error !== undefined && stored.some(({ id }) => id === turn.replaces);
  return { messages: stored, turn: isUnstored ? turn : undefined };
}

export function lastSequence(stored: readonly Message[]): number {
  return stored.at(-1)?.sequence ?? 0;
}
