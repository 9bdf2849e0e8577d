/** Reads the stream of an answer: chunks of chat completions as server-sent events. */
import { ApiError } from "../api/errors";

interface Chunk {
  choices?: { delta?: { content?: string | null; refusal?: string | null } }[];
  error?: { message?: string; code?: string };
  message?: string;
}

/** An event without an end is not collected any further. */
const MAX_EVENT_CHARACTERS = 8_388_608;

/** Reads to the end of the stream, and passes on each piece of the answer. Raises ApiError for an error in the stream. */
export async function readAnswer(body: ReadableStream<Uint8Array>, onText: (text: string) => void): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let isEnded = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_EVENT_CHARACTERS) throw broken();
    for (const line of lines) {
      const data = line.startsWith("data:") ? line.slice("data:".length).trim() : "";
      if (data === "[DONE]") isEnded = true;
      else if (data !== "") onText(textOf(JSON.parse(data) as Chunk));
    }
  }
  if (!isEnded) throw broken();
}

function textOf({ choices, error, message }: Chunk): string {
  if (error !== undefined) throw new ApiError(0, error.message ?? message ?? "", error.code ?? null);
  const delta = choices?.[0]?.delta;
  return delta?.content ?? delta?.refusal ?? "";
}

function broken(): TypeError {
  return new TypeError("The stream of the answer ended early.");
}
