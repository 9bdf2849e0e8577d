/** The latest question of each conversation since the console was opened, with its answer so far. Turns are stored
 * outside of React components, so that an answer continues while the user opens another page. */
import { useSyncExternalStore } from "react";
import { api } from "../api/client";
import { apiError } from "../api/errors";
import { queries } from "../api/queries";
import { readAnswer } from "./stream";
import { isActive, type Turn } from "./turn";

/** The minimum time between two updates of the displayed answer. */
const SHOW_MS = 80;
/** The delay between a stop and loading the stored messages. The API stores the text shortly after the request ends. */
const STORED_AFTER_STOP_MS = 1_000;
/** The delay between an answer and loading the titles. The API writes a title after the first answer. */
const TITLE_MS = 2_500;

const turns = new Map<string, Turn>();
const controllers = new Map<string, AbortController>();
const listeners = new Set<() => void>();

/** The latest turn of a conversation since the console was opened. */
export function useTurn(conversationId: string): Turn | undefined {
  return useSyncExternalStore(subscribe, () => turns.get(conversationId));
}

/** Aborts the request of this conversation. The gateway then also ends its request to the provider. */
export function stop(conversationId: string): void {
  controllers.get(conversationId)?.abort();
}

/** Removes a turn that was not answered. */
export function discard(conversationId: string): void {
  turns.delete(conversationId);
  notify();
}

/** Posts a question, and reads its answer into the turn. If `replaces` is set, it is the id of the newest question,
 * which the new turn replaces. */
export async function ask(conversationId: string, question: string, model: string, after: number, replaces?: string): Promise<void> {
  if (isActive(turns.get(conversationId))) return;
  const controller = new AbortController();
  controllers.set(conversationId, controller);
  set(conversationId, { question, model, answer: "", after, replaces, state: "waiting" });
  const shown = throttled((answer) => change(conversationId, { answer, state: "answering" }));
  try {
    const { data, error, response } = await api.POST("/api/conversations/{conversation_id}/messages", {
      params: { path: { conversation_id: conversationId } }, body: { content: question, model, stream: true, ...(replaces !== undefined && { replaces }) },
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

/** Loads the stored messages, and then sets the state. Until the messages are loaded, the page shows the turn, and
 * hides its stored messages, which can be incomplete. */
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
