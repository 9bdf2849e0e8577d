/** Repeats requests that a rate limit refuses, for work that sends many requests, such as an export. */
import { ApiError } from "./errors";

/** Returns the result of `call`. If a rate limit refuses the request, waits for the time that the response names and
 * calls `call` again. */
export async function paced<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error;
      await waited((error.retryAfterSeconds ?? 1) * 1000, signal);
    }
  }
}

function waited(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}
