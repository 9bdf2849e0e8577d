/** The session of this browser. Exchanges the cookie for access tokens, which are kept only in memory. */
import { failure } from "./errors";
import type { components } from "./schema";

export type Session = components["schemas"]["SessionToken"];

/** No session is open in this browser. */
export class SignedOut extends Error {
  override name = "SignedOut";
}

/** A token is treated as expired this many seconds before its end, because a request takes time to arrive. */
const MARGIN_SECONDS = 20;

let current: { session: Session; expiresAt: number } | null = null;
let pending: Promise<Session> | null = null;

/** Returns the session with a valid access token. Throws SignedOut if this browser has no session. */
export async function openSession(): Promise<Session> {
  if (current !== null && Date.now() < current.expiresAt) return current.session;
  // Calls that start together share one exchange.
  pending ??= exchange().finally(() => {
    pending = null;
  });
  return pending;
}

/** Discards the token, so that the next call exchanges the cookie again. */
export function discardToken(): void {
  current = null;
}

async function exchange(): Promise<Session> {
  const response = await fetch("/api/auth/session/token", { method: "POST", credentials: "same-origin" });
  if (response.status === 401) throw new SignedOut();
  if (!response.ok) throw await failure(response);
  const session = (await response.json()) as Session;
  current = { session, expiresAt: Date.now() + (session.expires_in - MARGIN_SECONDS) * 1000 };
  return session;
}

/** Ends the session, and also the session at the identity provider if the provider supports this. Then opens a page
 * that states which sessions ended. */
export async function signOut(): Promise<void> {
  const ended = await endSession();
  discardToken();
  location.assign(ended?.provider_logout_url ?? (ended?.by_identity_provider === true ? "/login?done=out-here" : "/login?done=out"));
}

/** Ends the session. Returns null if the session had already ended. */
async function endSession(): Promise<components["schemas"]["SignedOut"] | null> {
  try {
    const { access_token: token } = await openSession();
    const response = await fetch("/api/auth/logout?single_logout=true", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
    if (response.ok) return (await response.json()) as components["schemas"]["SignedOut"];
    if (response.status !== 401) throw await failure(response);
  } catch (error) {
    if (!(error instanceof SignedOut)) throw error;
  }
  return null;
}

/** Opens the sign-in page, which returns to the current page after the sign-in. */
export function signIn(): void {
  const here = location.pathname + location.search;
  location.assign(`/login?next=${encodeURIComponent(here)}`);
}
