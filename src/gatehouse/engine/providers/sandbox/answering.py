"""The sandbox as a server: maps a path and a body to a status and a body, without framework or network."""

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.form import (
    Completion,
    Delta,
    GenerationFinished,
    StreamEnded,
    StreamStarted,
    Text,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.providers.sandbox.behaviour import LISTED_MODELS, Behaviour, of_model
from gatehouse.engine.providers.sandbox.content import (
    CREATED,
    DIMENSIONS,
    MAX_DIMENSIONS,
    complete,
    count,
    pieces,
    vector,
)
from gatehouse.foundation.errors import NotFound, Refusal

GARBAGE = b"<html>This is not the answer that you were looking for.\n\n\x00\xff</html>"

_PATHS: Mapping[str, str] = {
    "/chat/completions": "openai_chat",
    "/messages": "anthropic_messages",
    "/embeddings": "openai_embeddings",
}


_JSON: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})


class CutOff(Exception):
    """The body ends before its announced length: the connection must be closed."""


class SandboxAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `stream` is set instead of `body` for events. With `cut`, only the first half of `body` is sent. A
    stream that breaks raises `CutOff`."""

    status: int = 200
    headers: Mapping[str, str] = _JSON
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    cut: bool = False


async def answer(method: str, path: str, body: bytes) -> SandboxAnswer:
    """Return the answer to a request, in the dialect of the path. Paths may begin with `/v1`. Errors are answers,
    too."""
    path = path.partition("?")[0].removeprefix("/v1").rstrip("/")
    if method == "GET" and path == "/models":
        return SandboxAnswer(body=_models())
    name = _PATHS.get(path)
    if name is None or method != "POST":
        return _error_answer(DIALECTS["openai_chat"], NotFound())
    dialect = DIALECTS[name]
    try:
        call = dialect.decode(body)
        behaviour = of_model(call.model)
        if behaviour is None:
            raise _UnknownModel(f"The sandbox has no model `{call.model}`.")
        if behaviour.delay_seconds:
            await asyncio.sleep(behaviour.delay_seconds)
        if behaviour.status != 200:
            error = _RequestedError(f"The sandbox answers {behaviour.status} as asked.")
            return _error_answer(dialect, error, behaviour.status)
        return _success_answer(dialect, call, behaviour)
    except Refusal as refusal:
        return _error_answer(dialect, refusal)


def _success_answer(dialect: Dialect, call: ModelCall, behaviour: Behaviour) -> SandboxAnswer:
    if dialect.operation == "embeddings":
        body = _embeddings(call)
    else:
        completion = complete(dialect.to_internal(call), behaviour)
        if call.stream:
            events = _events(dialect, call, completion)
            stream = _garbage() if behaviour.garbage else _streamed(events, cut=behaviour.cut)
            return SandboxAnswer(headers={"content-type": "text/event-stream"}, stream=stream)
        body = dialect.render_reply(completion, call)
    if behaviour.garbage:
        return SandboxAnswer(body=GARBAGE)
    return SandboxAnswer(body=body, cut=behaviour.cut)


class _UnknownModel(NotFound):
    code = "model_not_found"


class _RequestedError(Refusal):
    type = "sandbox_error"
    code = "sandbox"


def _error_answer(dialect: Dialect, error: Refusal, status: int | None = None) -> SandboxAnswer:
    return SandboxAnswer(status=status or error.status, body=dialect.render_error(error))


def _events(dialect: Dialect, call: ModelCall, completion: Completion) -> list[bytes]:
    writer = dialect.stream_writer(call)
    return [event for event in map(writer.write, deltas_of(completion)) if event]


def deltas_of(completion: Completion) -> Iterator[Delta]:
    yield StreamStarted(id=completion.id, model=completion.model, created=completion.created)
    tools = 0
    for part in completion.parts:
        if isinstance(part, Text):
            yield from map(TextDelta, pieces(part.text))
        else:
            yield ToolStarted(index=tools, id=part.id, name=part.name)
            half = len(part.arguments) // 2
            yield ToolArguments(index=tools, text=part.arguments[:half])
            yield ToolArguments(index=tools, text=part.arguments[half:])
            tools += 1
    yield GenerationFinished(reason=completion.finish)
    if completion.usage is not None:
        yield UsageDelta(completion.usage)
    yield StreamEnded()


async def _streamed(events: list[bytes], *, cut: bool) -> AsyncIterator[bytes]:
    for number, event in enumerate(events):
        if cut and number * 2 >= len(events):
            raise CutOff
        # Yield to other tasks between two events, as a network stream would.
        await asyncio.sleep(0)
        yield event


async def _garbage() -> AsyncIterator[bytes]:
    yield GARBAGE


def _embeddings(call: ModelCall) -> bytes:
    value = call.body["input"]
    texts = [value] if isinstance(value, str) else [str(item) for item in value]
    dimensions = min(call.body.get("dimensions") or DIMENSIONS, MAX_DIMENSIONS)
    vectors = [vector(text, dimensions) for text in texts]
    tokens = sum(map(count, texts))
    return msgspec.json.encode(
        {
            "object": "list",
            "model": call.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": _encoded_vector(values, call.body)}
                for index, values in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def _encoded_vector(values: list[float], body: Mapping[str, Any]) -> Any:
    if body.get("encoding_format") != "base64":
        return values
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def _models() -> bytes:
    # The fields of both formats, so that clients of either can read the list.
    models = [
        {
            "id": name,
            "object": "model",
            "created": CREATED,
            "owned_by": "sandbox",
            "type": "model",
            "display_name": f"Sandbox {name}",
            "created_at": "2023-11-14T22:13:20Z",
        }
        for name in LISTED_MODELS
    ]
    first_id, last_id = LISTED_MODELS[0], LISTED_MODELS[-1]
    return msgspec.json.encode(
        {"object": "list", "data": models, "has_more": False, "first_id": first_id, "last_id": last_id}
    )
