/** Names of users, for lists that contain their ids. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { useRights, useSession } from "./queries";

/** Returns the name of a user of the organization. Returns the beginning of the id while the name is loading, and if
 * the user was deleted or may not be read. Returns null without an id. */
export function useUserName(id: string | null | undefined): string | null {
  const { seesAll } = useRights();
  const { user } = useSession();
  const isOther = id !== null && id !== undefined && id !== user.id;
  const { data } = useQuery({
    queryKey: ["users", id],
    enabled: isOther && seesAll,
    staleTime: 300_000,
    retry: false,
    queryFn: () => dataOf(api.GET("/api/admin/users/{user_id}", { params: { path: { user_id: id ?? "" } } })),
  });
  if (id === null || id === undefined) return null;
  const known = isOther ? data : user;
  return known?.display_name ?? known?.email ?? known?.username ?? `${id.slice(0, 8)}…`;
}
