/** Conversations, their messages and links: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import type { UsageRecord } from "../requests/api";

export type Conversation = Schemas["Conversation"];
export type Message = Schemas["Message"];

export const PAGE_SIZE = 25;
export const LINKS_PAGE_SIZE = 20;
export const AUTO_MODEL = "auto";

const MESSAGES_PAGE_SIZE = 500;
/** The maximum number of pages of messages that are loaded. */
const MAX_MESSAGE_PAGES = 20;
/** The interval at which a missing record is requested again. A record is stored within a second after its answer. */
const RECORD_MS = 700;
const MAX_RECORD_LOADS = 8;

/** A page of the user's conversations, the most recently used first. `search` is a part of their titles. */
export function useConversations(page: number, search: string | undefined) {
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE, ...(search !== undefined && { search }) };
  return useQuery({
    queryKey: ["conversations", "list", page, search],
    placeholderData: keepPreviousData,
    queryFn: () => dataOf(api.GET("/api/conversations", { params: { query } })),
  });
}

export function useConversation(id: string) {
  return useQuery({
    queryKey: ["conversations", "one", id],
    queryFn: () => dataOf(api.GET("/api/conversations/{conversation_id}", { params: { path: { conversation_id: id } } })),
  });
}

/** All messages of a conversation, oldest first. */
export function useMessages(id: string) {
  return useQuery({
    queryKey: ["conversations", "messages", id],
    queryFn: async (): Promise<Message[]> => {
      const all: Message[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < MAX_MESSAGE_PAGES; page += 1) {
        const query: { limit: number; cursor?: string } = { limit: MESSAGES_PAGE_SIZE, ...(cursor !== null && { cursor }) };
        const answer: Schemas["MessagePage"] = await dataOf(
          api.GET("/api/conversations/{conversation_id}/messages", { params: { path: { conversation_id: id }, query } }),
        );
        all.push(...answer.messages);
        cursor = answer.next_cursor;
        if (cursor === null) break;
      }
      return all;
    },
  });
}

/** The usage record of an answer, with its tokens and cost. The data is null until the record is stored, and if there
 * is no record. */
export function useAnswerRecord(requestId: string | null, enabled: boolean) {
  return useQuery({
    queryKey: ["usage-records", "answer", requestId],
    enabled: enabled && requestId !== null,
    staleTime: Infinity,
    refetchInterval: ({ state }) => (state.data === null && state.dataUpdateCount < MAX_RECORD_LOADS ? RECORD_MS : false),
    queryFn: async (): Promise<UsageRecord | null> => {
      const query = { request_id: requestId, limit: 1 };
      return (await dataOf(api.GET("/api/v1/usage/records", { params: { query } }))).records[0] ?? null;
    },
  });
}

function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(["list", "one"].map((part) => client.invalidateQueries({ queryKey: ["conversations", part] }))),
  });
}

export function useCreateConversation() {
  return useChange((model: string | null) => dataOf(api.POST("/api/conversations", { body: { model } })));
}

export function useUpdateConversation(id: string) {
  return useChange((body: Schemas["ConversationUpdate"]) =>
    dataOf(api.PATCH("/api/conversations/{conversation_id}", { params: { path: { conversation_id: id } }, body })),
  );
}

export function useDeleteConversation(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => dataOf(api.DELETE("/api/conversations/{conversation_id}", { params: { path: { conversation_id: id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["conversations", "list"] }),
  });
}

/** A page of the conversation's valid links, oldest first. */
export function useShareLinks(id: string, page: number) {
  const query = { revoked: false, limit: LINKS_PAGE_SIZE, offset: (page - 1) * LINKS_PAGE_SIZE };
  return useQuery({
    queryKey: ["conversations", "links", id, page],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/conversations/{conversation_id}/share_links", { params: { path: { conversation_id: id }, query } })),
  });
}

function useLinkChange<Input>(id: string, change: (input: Input) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["conversations", "links", id] }),
  });
}

export function useCreateLink(id: string) {
  return useLinkChange(id, () => dataOf(api.POST("/api/conversations/{conversation_id}/share_links", { params: { path: { conversation_id: id } } })));
}

export function useRevokeLink(id: string) {
  return useLinkChange(id, (linkId: string) =>
    dataOf(api.DELETE("/api/conversations/{conversation_id}/share_links/{token_id}", { params: { path: { conversation_id: id, token_id: linkId } } })),
  );
}
