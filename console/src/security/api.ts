/** The user's own account: password, second factors, sessions. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { createPasskey } from "../api/passkeys";
import { discardToken } from "../api/session";
import { PAGE_SIZE } from "../parts/ListPanel";

export type Session = Schemas["Session"];

/** A page of the user's open sessions, newest first. */
export function useSessions(page: number) {
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["sessions", page],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/auth/sessions", { params: { query } })),
  });
}

export function useFactors() {
  return useQuery({ queryKey: ["second-factors"], queryFn: () => dataOf(api.GET("/api/auth/mfa")) });
}

function useOwnChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(["sessions", "second-factors"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

export function useEndSession() {
  return useOwnChange((id: string) => dataOf(api.DELETE("/api/auth/sessions/{session_id}", { params: { path: { session_id: id } } })));
}

export function useChangePassword() {
  return useOwnChange((body: Schemas["PasswordChange"]) => dataOf(api.POST("/api/auth/password/change", { body })));
}

export function useBeginApp() {
  return useOwnChange(() => dataOf(api.POST("/api/auth/mfa/totp", { body: {} })));
}

export function useConfirmApp() {
  return useOwnChange(async (code: string) => verified(await dataOf(api.POST("/api/auth/mfa/totp/confirm", { body: { code } }))));
}

export function useRemoveApp() {
  return useOwnChange(() => dataOf(api.DELETE("/api/auth/mfa/totp")));
}

export function useAddPasskey() {
  return useOwnChange(async (name: string) => {
    const { public_key } = await dataOf(api.POST("/api/auth/mfa/webauthn/register/begin", { body: {} }));
    const credential = await createPasskey(public_key);
    return verified(await dataOf(api.POST("/api/auth/mfa/webauthn/register/finish", { body: { name, credential } })));
  });
}

/** Discards the token. Enrolling a factor also verifies the session, and only a new token contains this. */
function verified<T>(enrolled: T): T {
  discardToken();
  return enrolled;
}

export function useRemovePasskey() {
  return useOwnChange((id: string) =>
    dataOf(api.DELETE("/api/auth/mfa/webauthn/{passkey_id}", { params: { path: { passkey_id: id } } })),
  );
}

export function useRecoveryCodes() {
  return useOwnChange(() => dataOf(api.POST("/api/auth/mfa/recovery-codes")));
}
