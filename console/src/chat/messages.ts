/** Messages of failed questions, and which messages of a conversation are shown. */
import { ApiError } from "../api/errors";
import { errorText } from "../parts/states";
import type { Message } from "./api";
import { isActive, type Turn } from "./turn";

/** The API's own message, also for limits, where it names which one. */
export function messageOf(error: unknown): string {
  return error instanceof ApiError && error.status === 429 && error.message !== "" ? error.message : errorText(error);
}

/** The stored messages to show, and the turn if it is to be shown after them. While an answer is being written its stored
 * messages are incomplete, so the turn is shown instead. Afterwards the turn is shown only where nothing of it is stored. */
export function shownMessages(stored: readonly Message[], turn: Turn | undefined): { messages: readonly Message[]; turn: Turn | undefined } {
  if (turn === undefined) return { messages: stored, turn };
  const before = stored.filter(({ sequence }) => sequence <= turn.after);
  if (isActive(turn)) return { messages: before, turn };
  return before.length === stored.length ? { messages: stored, turn } : { messages: stored, turn: undefined };
}

export function lastSequence(stored: readonly Message[]): number {
  return stored.at(-1)?.sequence ?? 0;
}
