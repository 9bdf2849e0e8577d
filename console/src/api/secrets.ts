/** Generates secrets for receivers of webhooks and forwarded events. */

const SECRET_BYTES = 32;

/** A random secret, in hexadecimal. */
export function newSecret(): string {
  return [...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
