/** Questions that are being answered, and the last one of each conversation that was not answered in full. They live
 * outside of the page, so that an answer goes on while another conversation is open. */
import { useSyncExternalStore } from "react";
import { api } from "../api/client";
import { apiError } from "../api/errors";
import { queries } from "../api/queries";
import { readAnswer } from "./stream";
import { isActive, type Turn } from "./turn";

/** New text is shown at most this often. */
const SHOW_MS = 80;
/** The text until a stop is stored a moment after the call has ended. */
const STORED_AFTER_STOP_MS = 1_000;
/** A title is written after the first answer. */
const TITLE_MS = 2_500;

const turns = new Map<string, Turn>();
const controllers = new Map<string, AbortController>();
const listeners = new Set<() => void>();

/** The latest turn of a conversation since the console was opened. */
export function useTurn(conversationId: string): Turn | undefined {
  return useSyncExternalStore(subscribe, () => turns.get(conversationId));
}

/** Ends the call, and with it the provider's. */
export function stop(conversationId: string): void {
  controllers.get(conversationId)?.abort();
}

/** Removes a turn that was not answered. */
export function discard(conversationId: string): void {
  turns.delete(conversationId);
  notify();
}

/** Posts a question, and follows its answer. */
export async function ask(conversationId: string, question: string, model: string, after: number): Promise<void> {
  if (isActive(turns.get(conversationId))) return;
  const controller = new AbortController();
  controllers.set(conversationId, controller);
  set(conversationId, { question, model, answer: "", after, state: "waiting" });
  const shown = throttled((answer) => change(conversationId, { answer, state: "answering" }));
  try {
    const { data, error, response } = await api.POST("/api/conversations/{conversation_id}/messages", {
      params: { path: { conversation_id: conversationId } }, body: { content: question, model, stream: true },
      parseAs: "stream", signal: controller.signal,
    });
    change(conversationId, { dlpAction: response.headers.get("x-dlp-action") });
    if (!response.ok) return change(conversationId, { state: "refused", error: apiError(response, error) });
    await readAnswer(data as unknown as ReadableStream<Uint8Array>, shown.add);
    shown.flush();
    await settle(conversationId, "done");
    setTimeout(() => void queries.invalidateQueries({ queryKey: ["conversations", "list"] }), TITLE_MS);
    setTimeout(() => void queries.invalidateQueries({ queryKey: ["conversations", "one", conversationId] }), TITLE_MS);
  } catch (error) {
    shown.flush();
    if (controller.signal.aborted) {
      change(conversationId, { state: "settling" });
      await new Promise((resolve) => setTimeout(resolve, STORED_AFTER_STOP_MS));
      await settle(conversationId, "stopped");
    } else {
      change(conversationId, { error });
      await settle(conversationId, "failed");
    }
  } finally {
    controllers.delete(conversationId);
  }
}

/** Loads the stored messages. Until they are there the page shows the turn, and no stored answer that is being written. */
async function settle(conversationId: string, state: Turn["state"]): Promise<void> {
  change(conversationId, { state: "settling" });
  await Promise.all([
    queries.invalidateQueries({ queryKey: ["conversations", "messages", conversationId], refetchType: "all" }),
    queries.invalidateQueries({ queryKey: ["conversations", "list"] }),
  ]);
  change(conversationId, { state });
}

function throttled(show: (text: string) => void) {
  let text = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (text !== "") show(text);
  };
  const add = (more: string) => {
    text += more;
    timer ??= setTimeout(flush, SHOW_MS);
  };
  return { add, flush };
}

function change(conversationId: string, changed: Partial<Turn>): void {
  const turn = turns.get(conversationId);
  if (turn !== undefined) set(conversationId, { ...turn, ...changed });
}

function set(conversationId: string, turn: Turn): void {
  turns.set(conversationId, turn);
  notify();
}

function notify(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
