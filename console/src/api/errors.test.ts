import { expect, test } from "vitest";
import { errorText } from "../parts/states";
import { texts } from "../texts";
import { apiError } from "./errors";

function errorOf(status: number, body: unknown, retryAfter?: string) {
  return apiError(new Response(null, { status, headers: retryAfter === undefined ? {} : { "Retry-After": retryAfter } }), body);
}

test("a refusal by a limit has the API's own message, which names the limit", () => {
  const message = "All deployments of this model have reached their limits. Try again later.";
  expect(errorText(errorOf(429, { error: { message, code: "deployments_full" } }, "7"))).toBe(message);
  expect(errorText(errorOf(429, { error: "replay_running", message }))).toBe(message);
});

test("a refusal by a limit without a message says when to try again", () => {
  expect(errorText(errorOf(429, { error: "rate_limit_exceeded", tier: "standard", retry_after: 7 }, "7"))).toBe("Too many requests. Try again in 7 s.");
  expect(errorText(errorOf(429, null))).toBe("Too many requests. Wait a moment.");
});

test("a change of another version has the console's message, which says what to do in a form", () => {
  expect(errorText(errorOf(412, { detail: "Read it again." }))).toBe(texts.errors.changed);
  expect(errorText(errorOf(412, { error: "precondition_failed", message: "Read it again." }))).toBe(texts.errors.changed);
});
