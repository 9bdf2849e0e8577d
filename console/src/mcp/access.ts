/** Access rules of MCP servers: the table of tools and subjects, and its changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { ifMatch } from "../api/versions";
import { useScopeName } from "../budgets/scopes";
import { errorText } from "../parts/states";
import { nameOf } from "../users/api";
import type { SubjectType } from "./choices";

export type Matrix = Schemas["AccessMatrix"];
export type MatrixTool = Matrix["tools"][number];
export type Subject = Matrix["subjects"][number];
export type Rule = Matrix["rules"][number];
export type Access = Rule["access_type"];
export type NewRule = Schemas["NewAccessRule"];

/** The number of tools on a page of the table. */
export const PAGE_SIZE = 50;
/** The number of subjects in an answer. */
export const SUBJECTS_SIZE = 20;
const MATCHES = 50;

export interface MatrixFilters {
  server?: string | undefined;
  search?: string | undefined;
  subjects?: SubjectType | undefined;
  caller_type?: SubjectType | undefined;
  caller?: string | undefined;
}

/** A page of the tools of a server with a page of the subjects of its rules. */
export function useMatrix({ server, search, subjects, caller_type, caller }: MatrixFilters, page: number, subjectsPage: number) {
  const hasCaller = caller_type !== undefined && caller !== undefined;
  const query = {
    search, subject_type: subjects, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE, subjects_offset: (subjectsPage - 1) * SUBJECTS_SIZE,
    ...(hasCaller && { caller_type, caller_id: caller }),
  };
  return useQuery({
    queryKey: ["mcp", "matrix", server, query],
    enabled: server !== undefined,
    placeholderData: (previous: Matrix | undefined, last) => (last?.queryKey[2] === server ? keepPreviousData(previous) : undefined),
    queryFn: () => dataOf(api.GET("/api/v1/admin/mcp/servers/{server_id}/access/matrix", { params: { path: { server_id: server ?? "" }, query } })),
  });
}

/** The first subjects of a type that match a search. The query is disabled while `search` is null. */
export function useSubjectOptions(type: SubjectType, search: string | null | undefined) {
  return useQuery({
    queryKey: ["mcp", "subjects", type, search],
    enabled: search !== null,
    placeholderData: (previous, last) => (last?.queryKey[2] === type ? keepPreviousData(previous) : undefined),
    queryFn: () => subjectsOf(type, search || undefined),
  });
}

interface Options {
  rows: { id: string; name: string; detail?: string | null }[];
  total: number;
}

async function subjectsOf(type: SubjectType, search: string | undefined): Promise<Options> {
  const filters = { ...(search !== undefined && { search }) };
  if (type === "group") {
    const { groups, total } = await dataOf(api.GET("/api/admin/groups", { params: { query: { ...filters, limit: MATCHES } } }));
    return { rows: groups.map(({ id, name }) => ({ id, name })), total };
  }
  if (type === "user") {
    const { items, total } = await dataOf(api.GET("/api/admin/users", { params: { query: { ...filters, page_size: MATCHES } } }));
    return { rows: items.map((user) => ({ id: user.id, name: nameOf(user), detail: user.email })), total };
  }
  if (type === "api_key") {
    const { rows, total } = await listOf(api.GET("/api/admin/api-keys", { params: { query: { ...filters, limit: MATCHES } } }));
    return { rows: rows.map((key) => ({ id: key.id, name: key.description, detail: `${key.key_prefix}…` })), total };
  }
  const list = await dataOf(api.GET("/api/admin/oauth-clients/", {
    params: { header: { "x-api-variant": "b" }, query: { ...filters, sort: "name", page_size: MATCHES } },
  }));
  const clients = "items" in list ? list.items : list;
  return { rows: clients.map(({ client_id: id, name }) => ({ id, name })), total: "items" in list ? list.total : clients.length };
}

export function useAddRule(server: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (rule: NewRule) => addRule(server, rule),
    onSettled: () => client.invalidateQueries({ queryKey: ["mcp", "matrix"] }),
  });
}

function addRule(server: string, body: NewRule) {
  return dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/access", { params: { path: { server_id: server } }, body }));
}

/** The edit of a cell. `before` is the rule that the user saw. `after` is null if the rule is removed. */
interface Edit {
  server: string;
  subject: Subject;
  tool: string | null;
  before: Rule | undefined;
  after: Access | null;
}

export interface Failure {
  edit: Edit;
  message: string;
}

function keyOf(server: string, subject: Pick<Subject, "subject_type" | "subject_id">, tool: string | null): string {
  return `${server} ${subject.subject_type} ${subject.subject_id} ${tool ?? ""}`;
}

/** The rules of the table of a server with the user's edits, which may be of other pages and servers too. Saves the edits one after the other. */
export function useEdits(server: string, rules: readonly Rule[]) {
  const client = useQueryClient();
  const [edits, setEdits] = useState<ReadonlyMap<string, Edit>>(new Map());
  const stored = new Map(rules.map((rule) => [keyOf(server, rule, rule.tool), rule]));
  const save = useMutation({
    mutationFn: async () => {
      const failures: Failure[] = [];
      for (const edit of edits.values()) {
        try {
          await apply(edit);
        } catch (error) {
          failures.push({ edit, message: errorText(error) });
        }
      }
      const saved = edits.size - failures.length;
      await client.invalidateQueries({ queryKey: ["mcp", "matrix"] });
      // A failed change is shown with its message, and the table shows the stored rule.
      setEdits(new Map());
      return { saved, failures };
    },
  });
  return {
    save, count: edits.size,
    valueOf: (subject: Subject, tool: string | null) => {
      const edit = edits.get(keyOf(server, subject, tool));
      return edit === undefined ? stored.get(keyOf(server, subject, tool))?.access_type ?? null : edit.after;
    },
    isEdited: (subject: Subject, tool: string | null) => edits.has(keyOf(server, subject, tool)),
    edit: (subject: Subject, tool: string | null, after: Access | null) =>
      setEdits((now) => {
        const key = keyOf(server, subject, tool);
        const before = now.get(key)?.before ?? stored.get(key);
        const next = new Map(now);
        if (after === (before?.access_type ?? null)) next.delete(key);
        else next.set(key, { server, subject, tool, before, after });
        return next;
      }),
    discard: () => {
      setEdits(new Map());
      save.reset();
    },
  };
}

/** Saves an edit by one request, so that a failure leaves the stored rule as it was. If somebody else has added, changed
 * or removed the rule, the API refuses the edit. */
async function apply({ server, subject, tool, before, after }: Edit): Promise<void> {
  if (before === undefined) {
    const { subject_type, subject_id } = subject;
    if (after !== null) await addRule(server, { subject_type, subject_id, tool, access_type: after });
    return;
  }
  const path = { server_id: server, access_rule_id: before.id };
  if (after === null) {
    await dataOf(api.DELETE("/api/v1/admin/mcp/servers/{server_id}/access/{access_rule_id}", {
      params: { path, header: ifMatch(before.updated_at) },
    }));
  } else {
    await dataOf(api.PATCH("/api/v1/admin/mcp/servers/{server_id}/access/{access_rule_id}", {
      params: { path, header: ifMatch(before.updated_at) }, body: { access_type: after },
    }));
  }
}

/** Returns the name of a group, user, API key or OAuth client. `id` is empty if none is chosen. */
export function useSubjectName(type: SubjectType, id: string): string {
  return useScopeName({ scope_type: id === "" ? "tenant" : type, scope_id: id });
}
