import { describe, expect, test } from "vitest";
import { ApiError } from "../api/errors";
import type { Message } from "./api";
import { curlOf } from "./curl";
import { shownMessages } from "./messages";
import { readAnswer } from "./stream";
import type { Turn } from "./turn";

function message(sequence: number, status: Message["status"] = "complete"): Message {
  const role = sequence % 2 === 1 ? "user" : "assistant";
  return { id: `m${sequence}`, sequence, role, status, content: "", model: null, finish_reason: null, request_id: null, created_at: "" };
}

const turn = (state: Turn["state"]): Turn => ({ question: "q", model: "m", answer: "a", after: 2, state });

describe("a conversation shows", () => {
  const stored = [message(1), message(2), message(3), message(4, "incomplete")];

  test("the turn instead of its incomplete messages while an answer is being written", () => {
    for (const state of ["waiting", "answering", "settling"] as const) {
      expect(shownMessages(stored, turn(state))).toEqual({ messages: stored.slice(0, 2), turn: turn(state) });
    }
  });

  test("the stored messages afterwards, and the turn only if none of its messages is stored", () => {
    expect(shownMessages(stored, turn("done"))).toEqual({ messages: stored, turn: undefined });
    expect(shownMessages(stored.slice(0, 2), turn("refused"))).toEqual({ messages: stored.slice(0, 2), turn: turn("refused") });
    expect(shownMessages(stored, undefined)).toEqual({ messages: stored, turn: undefined });
  });
});

describe("the stream of an answer", () => {
  async function read(text: string, size: number): Promise<string> {
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    let answer = "";
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, (at += size)));
      },
    });
    await readAnswer(body, (piece) => {
      answer += piece;
    });
    return answer;
  }

  const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

  test.each([1, 7, 1000])("gives the same text in chunks of %i bytes", async (size) => {
    const text = `: hello\r\n\r\n${piece("Grüße")}data: {"choices": []}\n\n${piece(" ✓")}data: [DONE]\n\n`;
    expect(await read(text, size)).toBe("Grüße ✓");
  });

  test("is rejected if it ends early", async () => expect(read(piece("a"), 5)).rejects.toThrow(TypeError));

  test("is rejected with the message of an error event", async () => {
    const failed = read(`${piece("a")}data: {"error": {"message": "Blocked.", "code": "dlp_violation"}}\n\n`, 9);
    await expect(failed).rejects.toEqual(new ApiError(0, "Blocked.", "dlp_violation"));
  });
});

test("the curl command contains a placeholder for the key, and quotes the question for the shell", () => {
  const command = curlOf("https://gate.example", "id", "It's \"so\" $HOME `ls`", "auto");
  expect(command).toContain("Bearer $GATEHOUSE_API_KEY");
  expect(command).toContain(String.raw`-d '{"content":"It'\''s \"so\" $HOME ` + "`ls`");
});
