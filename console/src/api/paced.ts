/** Many calls one after the other, as an export makes them. */
import { ApiError } from "./errors";

/** The result of a call, which is repeated after the time that the API names while it refuses it for its rate. */
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
