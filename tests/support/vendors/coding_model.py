"""A model that calls one tool and then answers, over chat completions and Anthropic's messages."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.support.upstream import Connection

from gatehouse.engine.conversation.sse import frame

#: The last answer of the model. The number is a card number, which DLP redacts.
ANSWER = "Done. The card is 4111 1111 1111 1111."
REDACTED_ANSWER = "Done. The card is [CREDIT_CARD_1]."

JsonObject = dict[str, Any]


class CodingModel:
    """Calls `tool` with `arguments` until the request has a result of a tool, or has no tools. Then it gives its last
    answer."""

    def __init__(self, tool: str, arguments: JsonObject, *, answer: str | None = None) -> None:
        self._tool = tool
        self._arguments = json.dumps(arguments)
        self._answer = ANSWER if answer is None else answer
        # Clients replace an answer by a later one with the same id.
        self._ids = (f"x{number}" for number in itertools.count(1))

    async def __call__(self, connection: Connection) -> None:
        if not connection.head.startswith("POST "):
            # A health check lists the models.
            await connection.answer(b'{"data": []}')
            return
        request: JsonObject = json.loads(connection.body)
        is_openai = connection.head.startswith("POST /v1/chat/completions")
        is_last = not request.get("tools") or _has_tool_result(request["messages"])
        if not request.get("stream"):
            reply = self._openai_reply(is_last) if is_openai else self._anthropic_reply(is_last)
            await connection.answer(json.dumps(reply).encode())
            return
        await connection.begin_stream()
        for event in self._openai_events(is_last) if is_openai else self._anthropic_events(is_last):
            await connection.chunk(event)
        await connection.end_stream()

    def _openai_reply(self, is_last: bool) -> JsonObject:
        call = {"id": "call_1", "type": "function", "function": {"name": self._tool, "arguments": self._arguments}}
        message = {"content": self._answer} if is_last else {"content": "I look.", "tool_calls": [call]}
        finish = "stop" if is_last else "tool_calls"
        return {
            "id": next(self._ids), "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
        }  # fmt: skip

    def _openai_events(self, is_last: bool) -> Iterator[bytes]:
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
        if is_last:
            deltas += [{"content": piece} for piece in _pieces(self._answer)]
        else:
            function = {"name": self._tool, "arguments": ""}
            deltas.append({"content": "I look."})
            deltas.append({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
            for piece in _pieces(self._arguments):
                deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        chunk = {"id": next(self._ids), "object": "chat.completion.chunk", "created": 1, "model": "m"}
        for delta in deltas:
            yield _data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        finish = "stop" if is_last else "tool_calls"
        yield _data({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        yield _data({**chunk, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}})
        yield frame(b"[DONE]")

    def _blocks(self, is_last: bool) -> list[JsonObject]:
        thinking = {"type": "thinking", "thinking": "A plan.", "signature": "c2ln"}
        if is_last:
            return [thinking, {"type": "text", "text": self._answer}]
        call = {"type": "tool_use", "id": "toolu_1", "name": self._tool, "input": json.loads(self._arguments)}
        return [thinking, {"type": "text", "text": "I look."}, call]

    def _anthropic_reply(self, is_last: bool) -> JsonObject:
        return {
            "id": next(self._ids), "type": "message", "role": "assistant", "model": "m",
            "content": self._blocks(is_last),
            "stop_reason": "end_turn" if is_last else "tool_use", "usage": {"input_tokens": 9, "output_tokens": 4},
        }  # fmt: skip

    def _anthropic_events(self, is_last: bool) -> Iterator[bytes]:
        message = {
            "id": next(self._ids), "model": "m", "role": "assistant", "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1},
        }  # fmt: skip
        yield _event("message_start", message=message)
        for index, block in enumerate(self._blocks(is_last)):
            empty, deltas = self._anthropic_deltas(block)
            yield _event("content_block_start", index=index, content_block=empty)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        stop = "end_turn" if is_last else "tool_use"
        yield _event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 4})
        yield _event("message_stop")

    def _anthropic_deltas(self, block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Return the block as it starts, and its deltas."""
        match block["type"]:
            case "text":
                return {**block, "text": ""}, [
                    {"type": "text_delta", "text": piece} for piece in _pieces(block["text"])
                ]
            case "thinking":
                signature = {"type": "signature_delta", "signature": block["signature"]}
                return {**block, "thinking": "", "signature": ""}, [
                    {"type": "thinking_delta", "thinking": block["thinking"]}, signature,
                ]  # fmt: skip
            case _:
                return {**block, "input": {}}, [
                    {"type": "input_json_delta", "partial_json": piece} for piece in _pieces(self._arguments)
                ]


def _has_tool_result(messages: list[JsonObject]) -> bool:
    contents = [message.get("content") for message in messages]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return any(message["role"] == "tool" for message in messages) or any(
        block.get("type") == "tool_result" for block in blocks
    )


def _pieces(text: str) -> list[str]:
    """Return the text in pieces, as a model writes it."""
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def _data(event: JsonObject) -> bytes:
    return frame(json.dumps(event).encode())


def _event(kind: str, **fields: object) -> bytes:
    return frame(json.dumps({"type": kind, **fields}).encode(), kind)
