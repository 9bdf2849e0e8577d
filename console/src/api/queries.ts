/** The cache of the API's data. Keys begin with the endpoint's name, so that a change invalidates all of its lists. */
import { type InvalidateOptions, type InvalidateQueryFilters, type Query, QueryCache, QueryClient, type QueryKey, useQuery } from "@tanstack/react-query";
import { ApiError } from "./errors";
import { openSession, type Session, signIn, SignedOut } from "./session";

const MAX_RETRIES = 2;

/** A first load that is under way may have read what was before a change, and the load after the change would join it.
 * So it is ended first. */
class Client extends QueryClient {
  override async invalidateQueries<Key extends QueryKey = QueryKey>(filters?: InvalidateQueryFilters<Key>, options?: InvalidateOptions): Promise<void> {
    if (filters?.refetchType !== "none") {
      // Only queries that the invalidation loads again. A load that no page observes, such as `fetchQuery`, goes on.
      const predicate = (query: Query) =>
        query.state.data === undefined && query.isActive() && (filters?.predicate?.(query as never) ?? true);
      await this.cancelQueries({ ...filters, predicate } as InvalidateQueryFilters<QueryKey>);
    }
    return super.invalidateQueries(filters, options);
  }
}

export const queries = new Client({
  queryCache: new QueryCache({ onError: leadToSignIn }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (failures, error) => isTemporary(error) && failures < MAX_RETRIES,
      retryDelay: (failures, error) =>
        error instanceof ApiError && error.retryAfterSeconds !== null
          ? error.retryAfterSeconds * 1000
          : 500 * 2 ** failures,
    },
    mutations: { onError: leadToSignIn },
  },
});

/** The signed-in user and the organization. The shell shows nothing before it has them. */
export function useSession(): Session {
  const { data } = useQuery({ queryKey: ["session"], queryFn: openSession, staleTime: Infinity });
  if (data === undefined) throw new Error("no session yet");
  return data;
}

/** Whether the user sees all of the organization, whether the user may change it, and whether the user operates the
 * platform, which all organizations share. */
export function useRights(): { seesAll: boolean; administers: boolean; operates: boolean } {
  const { role, operator } = useSession().user;
  return { seesAll: role !== "user", administers: role === "admin", operates: role === "admin" && operator };
}

function leadToSignIn(error: unknown): void {
  if (error instanceof SignedOut) signIn();
}

function isTemporary(error: unknown): boolean {
  if (error instanceof SignedOut) return false;
  return !(error instanceof ApiError) || error.status === 429 || error.status >= 500;
}
