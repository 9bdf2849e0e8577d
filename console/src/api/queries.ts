/** The query cache. Query keys begin with the name of a resource, so that a mutation can invalidate all queries of this
 * resource. */
import { type InvalidateOptions, type InvalidateQueryFilters, type Query, QueryCache, QueryClient, type QueryKey, useQuery } from "@tanstack/react-query";
import { ApiError } from "./errors";
import { openSession, type Session, signIn, SignedOut } from "./session";

const MAX_RETRIES = 2;

/** A query client whose `invalidateQueries` first cancels initial loads that are in progress. Such a load may have read
 * the data before the change. Without the cancellation, TanStack Query would use the result of this load instead of
 * loading the data again. */
class Client extends QueryClient {
  override async invalidateQueries<Key extends QueryKey = QueryKey>(filters?: InvalidateQueryFilters<Key>, options?: InvalidateOptions): Promise<void> {
    if (filters?.refetchType !== "none") {
      // Cancel only active queries, because the invalidation loads them again. A load without an active observer, such
      // as one by `fetchQuery`, continues.
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
    // The variables of a change may be secrets, so they are not kept after its end.
    mutations: { gcTime: 0, onError: leadToSignIn },
  },
});

/** Returns the session with the signed-in user and the organization. The shell renders no page before the session is
 * loaded. */
export function useSession(): Session {
  const { data } = useQuery({ queryKey: ["session"], queryFn: openSession, staleTime: Infinity });
  if (data === undefined) throw new Error("no session yet");
  return data;
}

/** Returns whether the user can read all data of the organization, whether the user can change it, and whether the user
 * operates the platform, which all organizations share. */
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
