/** Reads the stream of an answer: chunks of chat completions as server-sent events. */
import { ApiError } from "../api/errors";
import { texts } from "../texts";

interface Chunk {
  choices?: { delta?: { content?: string | null; refusal?: string | null } }[];
  error?: { message?: string; code?: string };
  message?: string;
}

/** The maximum length of a line that has not ended yet. A longer line ends the stream with an error. */
const MAX_EVENT_CHARACTERS = 8_388_608;

/** Reads the stream to its end, and calls `onText` with each piece of the answer. Throws ApiError if the stream
 * contains an error, and TypeError if it ends early. */
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
  return new TypeError(texts.errors.network);
}
