"""Azure OpenAI on 127.0.0.1: its addresses, key header and API versions, its content filter, its chunks.

Requests are checked by the request types of the `openai` library. The last message controls the answer:
`filter this prompt`, `filter the answer`, `use a tool`, `be busy`.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.embedding_create_params import EmbeddingCreateParams
from pydantic import TypeAdapter
from tests.support.upstream import Connection, Upstream, upstream

KEY = "azure-key-0123456789"
DEPLOYMENTS = {"our-gpt": "gpt-4o", "our-vectors": "text-embedding-3-small"}
SAFE = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
HATED = SAFE | {"hate": {"filtered": True, "severity": "high"}, "jailbreak": {"filtered": True, "detected": True}}
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 7,
    "total_tokens": 37,
    "prompt_tokens_details": {"cached_tokens": 10, "audio_tokens": 0},
}
#: fields that versions before September 2024 do not have
NEWER = ("stream_options", "max_completion_tokens")


@asynccontextmanager
async def azure() -> AsyncIterator[Upstream]:
    async with upstream(_answer) as server:
        yield server


async def _answer(connection: Connection) -> None:
    method, target, _ = connection.head.split("\r\n")[0].split(" ")
    place = urlsplit(target)
    version = parse_qs(place.query).get("api-version", [""])[0]
    if connection.headers.get("api-key") != KEY or "authorization" in connection.headers:
        await _error(connection, 401, "401", "Access denied due to invalid subscription key or wrong API endpoint.")
    elif not version:
        await _error(connection, 404, "404", "Resource not found")
    elif (method, place.path) == ("GET", "/openai/deployments"):
        if version != "2023-03-15-preview":
            await _error(connection, 404, "404", "Resource not found")
            return
        data = [
            {"id": name, "model": model, "owner": "organization-owner", "status": "succeeded", "object": "deployment"}
            for name, model in DEPLOYMENTS.items()
        ]
        failed = {"id": "half-made", "model": "gpt-4o", "status": "failed", "object": "deployment"}
        await _json(connection, {"object": "list", "data": [*data, failed]})
    else:
        await _of_deployment(connection, place.path, version)


async def _of_deployment(connection: Connection, path: str, version: str) -> None:
    start, _, operation = path.removeprefix("/openai/deployments/").partition("/")
    body = msgspec.json.decode(connection.body)
    unknown = next((name for name in NEWER if name in body and version < "2024-09-01"), None)
    if start not in DEPLOYMENTS:
        await _error(connection, 404, "DeploymentNotFound", "The API deployment for this resource does not exist.")
    elif unknown:
        await _error(connection, 400, None, f"Unrecognized request argument supplied: {unknown}")
    elif operation == "embeddings":
        _check("embeddings", body)
        data = [{"object": "embedding", "index": n, "embedding": [0.1, 0.2]} for n in range(len(body["input"]))]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        await _json(connection, {"object": "list", "model": "text-embedding-3-small", "data": data, "usage": usage})
    else:
        assert operation == "chat/completions", path
        _check("streamed" if body.get("stream") else "chat", body)
        await _chat(connection, body, version)


async def _chat(connection: Connection, body: dict[str, Any], version: str) -> None:
    words = _words(body["messages"][-1].get("content"))
    if "filter this prompt" in words:
        await connection.answer(msgspec.json.encode(PROMPT_FILTERED), status=400)
    elif "be busy" in words:
        more = "retry-after: 7\r\nretry-after-ms: 7000\r\n"
        await connection.answer(b'{"error":{"code":"429","message":"Too many requests"}}', status=429, more=more)
    elif body.get("stream"):
        await connection.begin_stream()
        for chunk in _chunks(words, wants_usage=bool((body.get("stream_options") or {}).get("include_usage"))):
            await connection.chunk(
                b"data: " + (chunk if isinstance(chunk, bytes) else msgspec.json.encode(chunk)) + b"\n\n"
            )
        await connection.end_stream()
    else:
        message: dict[str, Any] = {"role": "assistant", "content": "Grüße aus Azure", "refusal": None}
        finish = "stop"
        if "use a tool" in words:
            function = {"name": "weather", "arguments": '{"place": "Oslo"}'}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
            finish = "tool_calls"
        results = SAFE
        if "filter the answer" in words:
            message, finish, results = {"role": "assistant"}, "content_filter", HATED
        choice = {
            "index": 0, "finish_reason": finish, "logprobs": None, "message": message,
            "content_filter_results": results,
        }  # fmt: skip
        prompt = [{"prompt_index": 0, "content_filter_results": SAFE}]
        await _json(connection, {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE,
                                 "prompt_filter_results": prompt})  # fmt: skip


def _chunks(words: str, *, wants_usage: bool) -> Iterable[dict[str, Any] | bytes]:
    prompt = [{"prompt_index": 0, "content_filter_results": SAFE}]
    yield {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": prompt}
    head = {**HEAD, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None, **more}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": "", "refusal": None}, content_filter_results={})
    if "use a tool" in words:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
        yield chunk({"tool_calls": [call]})
        for piece in ('{"place"', ': "Oslo"}'):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls", content_filter_results={})
    else:
        for piece in ("Grüße", " aus", " Azure"):
            yield chunk({"content": piece}, content_filter_results=SAFE)
        filtered = "filter the answer" in words
        yield chunk({}, "content_filter" if filtered else "stop", content_filter_results=HATED if filtered else {})
    if wants_usage:
        yield {**head, "choices": [], "usage": USAGE}
    yield b"[DONE]"


HEAD = {"id": "chatcmpl-az1", "created": 1731500000, "model": "gpt-4o-2024-08-06", "system_fingerprint": "fp_1"}
PROMPT_FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
        " Please modify your prompt and retry.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": HATED},
    }
}


def _words(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content or ""


async def _json(connection: Connection, body: Mapping[str, Any]) -> None:
    await connection.answer(msgspec.json.encode(body))


async def _error(connection: Connection, status: int, code: str | None, message: str) -> None:
    await connection.answer(msgspec.json.encode({"error": {"code": code, "message": message}}), status=status)


def _check(what: str, body: dict[str, Any]) -> None:
    """Raise an exception that breaks the connection off if the body does not match the library's types."""
    _exhausted(_TYPES[what].validate_python({"model": "", **body}))


_TYPES: Mapping[str, Any] = {
    "chat": TypeAdapter(CompletionCreateParamsNonStreaming),
    "streamed": TypeAdapter(CompletionCreateParamsStreaming),
    "embeddings": TypeAdapter(EmbeddingCreateParams),
}


def _exhausted(value: Any) -> None:
    """Read all iterables of the value, because they are only checked while they are read."""
    if isinstance(value, dict):
        for item in value.values():
            _exhausted(item)
    elif not isinstance(value, str | bytes) and isinstance(value, Iterable):
        for item in value:
            _exhausted(item)
