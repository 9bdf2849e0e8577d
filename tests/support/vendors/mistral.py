"""Mistral on 127.0.0.1. It checks requests with the models of the `mistralai` library, and refuses what the real
service also refuses: unknown fields, ids of other lengths, and an assistant message at the end without `prefix`. The
last message controls the answer: `think`, `use tools`, `be busy`, `break down`.
"""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
from mistralai.client.models import ChatCompletionRequest, ChatCompletionStreamRequest, EmbeddingRequest
from pydantic import ValidationError
from tests.support.upstream import Connection, Upstream, upstream

KEY = "mistral-key-0123456789"
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 7,
    "total_tokens": 37,
    "prompt_tokens_details": {"cached_tokens": 10},
}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, a secret thought."}], "closed": True}
CALLS = [("abcdefghi", "weather", '{"place": "Oslo"}'), ("jklmnopqr", "weather", '{"place": "Bergen"}')]
HEAD = {"id": "cmpl-1", "created": 1731500000, "model": "mistral-large-2411"}
MODELS = [
    {
        "id": "mistral-large-latest",
        "object": "model",
        "created": 1731500000,
        "owned_by": "mistralai",
        "name": "mistral-large-2411",
        "max_context_length": 131072,
        "type": "base",
        "capabilities": {"completion_chat": True, "function_calling": True, "vision": True},
    },
    {
        "id": "mistral-embed",
        "object": "model",
        "max_context_length": 8192,
        "type": "base",
        "capabilities": {"completion_chat": False},
    },
]
_ID = re.compile(r"[a-zA-Z0-9]{9}")


@asynccontextmanager
async def mistral() -> AsyncIterator[Upstream]:
    async with upstream(_answer) as server:
        yield server


async def _answer(connection: Connection) -> None:
    method, path, _ = connection.head.split("\r\n")[0].split(" ")
    if connection.headers.get("authorization") != f"Bearer {KEY}":
        await _send(connection, {"detail": "Unauthorized"}, 401)
    elif (method, path) == ("GET", "/v1/models"):
        await _send(connection, {"object": "list", "data": MODELS})
    elif path == "/v1/embeddings":
        body = msgspec.json.decode(connection.body)
        if not (faults := _faults(EmbeddingRequest, body)):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [{"object": "embedding", "index": n, "embedding": [0.1, 0.2]} for n in range(len(texts))]
            usage = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
            answer = {"id": "e", "object": "list", "model": "mistral-embed", "data": data, "usage": usage}
        await _send(connection, {"detail": faults} if faults else answer, 422 if faults else 200)
    else:
        assert path == "/v1/chat/completions", path
        await _chat(connection, msgspec.json.decode(connection.body))


async def _chat(connection: Connection, body: dict[str, Any]) -> None:
    streamed = bool(body.get("stream"))
    faults = _faults(ChatCompletionStreamRequest if streamed else ChatCompletionRequest, body)
    if faults:
        await _send(
            connection, {"object": "error", "message": {"detail": faults}, "type": "invalid_request_error"}, 422
        )
        return
    if objection := _objection(body["messages"]):
        payload = {"object": "error", "message": objection, "type": "invalid_request_message_order", "code": "3230"}
        await _send(connection, payload, 400)
        return
    words = _words(body["messages"][-1].get("content"))
    if "be busy" in words:
        payload = {"object": "error", "message": "Requests rate limit exceeded", "type": "rate_limited", "code": "1300"}
        await connection.answer(msgspec.json.encode(payload), status=429, more="retry-after: 3\r\n")
    elif streamed:
        await connection.begin_stream()
        for chunk in _chunks(words):
            data = chunk if isinstance(chunk, bytes) else msgspec.json.encode(chunk)
            await connection.chunk(b"data: " + data + b"\n\n")
        await connection.end_stream()
    else:
        message: dict[str, Any] = {"role": "assistant", "content": "Bonjour à tous", "tool_calls": None}
        finish = "stop"
        if "think" in words:
            message["content"] = [THOUGHT, {"type": "text", "text": "Bonjour à tous"}]
        elif "use tools" in words:
            calls = [
                {"id": call_id, "type": "function", "index": 0, "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in CALLS
            ]
            message, finish = {"role": "assistant", "content": "", "tool_calls": calls}, "tool_calls"
        elif "break down" in words:
            message["content"], finish = "Bon", "error"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        await _send(connection, {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE})


def _chunks(words: str) -> Iterable[dict[str, Any] | bytes]:
    head = {**HEAD, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

    yield chunk({"role": "assistant", "content": ""})
    if "think" in words:
        yield chunk({"content": [THOUGHT]})
        yield chunk({"content": [{"type": "text", "text": "Bonjour"}]})
        yield chunk({"content": " à tous"})
    elif "use tools" in words:
        calls = [
            {"id": call_id, "function": {"name": name, "arguments": arguments}, "index": 0}
            for call_id, name, arguments in CALLS
        ]
        yield chunk({"content": "", "tool_calls": calls}, "tool_calls", usage=USAGE)
        yield b"[DONE]"
        return
    elif "break down" in words:
        yield chunk({"content": "Bon"})
        yield chunk({"content": ""}, "error", usage=USAGE)
        yield b"[DONE]"
        return
    else:
        for piece in ("Bonjour", " à", " tous"):
            yield chunk({"content": piece})
    yield chunk({"content": ""}, "stop", usage=USAGE)
    yield b"[DONE]"


def _faults(model: Any, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the errors of the body, in the format of the real service."""
    names = {field.alias or name for name, field in model.model_fields.items()}
    unknown = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": body[name]}
        for name in body.keys() - names
    ]
    try:
        model.model_validate(body)
    except ValidationError as error:
        return unknown + [{"loc": ["body", *error["loc"]], "msg": error["msg"]} for error in error.errors()]
    return unknown


def _objection(messages: list[dict[str, Any]]) -> str | None:
    last = messages[-1]
    if last["role"] == "assistant" and not last.get("prefix"):
        return "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    for before, message in pairwise(messages):
        if (before["role"], message["role"]) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'"
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            return "Assistant message must have either content or tool_calls, but not none."
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    ids += [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    for call_id in ids:
        if not _ID.fullmatch(call_id):
            return f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def _words(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content or ""


async def _send(connection: Connection, body: dict[str, Any], status: int = 200) -> None:
    await connection.answer(msgspec.json.encode(body), status=status)
