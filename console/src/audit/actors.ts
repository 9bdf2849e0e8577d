/** The actors of audit events: users, OAuth clients, and others, which have no name. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { ApiError } from "../api/errors";
import { useUserName } from "../api/users";
import { useClientName } from "../budgets/scopes";
import { nameOf } from "../users/api";
import type { Choice, Choices } from "../parts/SearchFilter";
import { auditTexts } from "../texts/audit";
import type { AuditEvent } from "./api";

const MATCHES = 6;
/** Actors without a name, such as directories and outposts, are chosen by this id. */
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

/** Returns the name of the actor of an event. Returns its type if it has no name. */
export function useActorName({ actor_id: id, actor_type: type }: Pick<AuditEvent, "actor_id" | "actor_type">): string {
  const user = useUserName(type === "user" || type === "api_key" ? id : null);
  const client = useClientName(type === "oauth_client" ? id : null);
  return user ?? client ?? auditTexts.actorTypes[type] ?? type;
}

/** The first users and OAuth clients that match. The query is disabled while `search` is null. */
export function useActorChoices(search: string | null): Choices {
  const query = useQuery({
    queryKey: ["audit-events", "actors", search],
    enabled: search !== null,
    queryFn: async (): Promise<Choice[]> => {
      if (search !== null && ID.test(search)) return [{ id: search, name: search }];
      const filters = { ...(search && { search }), page_size: MATCHES };
      const [users, clients] = await Promise.all([
        dataOf(api.GET("/api/admin/users", { params: { query: filters } })),
        dataOf(api.GET("/api/admin/oauth-clients/", { params: { query: { ...filters, sort: "name" } } })),
      ]);
      return [
        ...users.items.map((user) => ({ id: user.id, name: nameOf(user), detail: user.email })),
        ...("items" in clients ? clients.items : clients).map((client) => ({
          id: client.client_id, name: client.name, detail: auditTexts.actorTypes["oauth_client"],
        })),
      ];
    },
  });
  return { data: query.data, error: query.error };
}

/** Returns the actor of the filter. Its name is the id while it is loading, and if there is no name. */
export function useChosenActor(id: string | undefined): Choice | undefined {
  const { data } = useQuery({
    queryKey: ["audit-events", "actors", "named", id],
    enabled: id !== undefined,
    staleTime: 300_000,
    retry: false,
    queryFn: async () => (await userNamed(id ?? "")) ?? (await clientNamed(id ?? "")),
  });
  return id === undefined ? undefined : { id, name: data ?? id };
}

async function userNamed(id: string): Promise<string | null> {
  const user = await ifFound(dataOf(api.GET("/api/admin/users/{user_id}", { params: { path: { user_id: id } } })));
  return user && nameOf(user);
}

async function clientNamed(id: string): Promise<string | null> {
  const client = await ifFound(dataOf(api.GET("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: id } } })));
  return client && client.name;
}

/** Returns null if the object does not exist, or if the id has another form. */
async function ifFound<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400 || error.status === 422)) return null;
    throw error;
  }
}
