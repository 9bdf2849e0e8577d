"""The sandbox as a server: maps a path and a body to a status and a body, without framework or network."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialect import NO_HEADERS, Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.form import (
    Completion,
    Delta,
    GenerationFinished,
    Reasoning,
    ReasoningDelta,
    ReasoningSigned,
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
    CREATED_SECONDS,
    MAX_CHOICES,
    complete,
    pieces,
)
from gatehouse.engine.providers.sandbox.whole_answers import WHOLE_ANSWERS, spoken
from gatehouse.foundation.errors import NotFound, Refusal

GARBAGE = b"<html>This is not the answer that you were looking for.\n\n\x00\xff</html>"

_PATHS: Mapping[str, str] = {
    "/chat/completions": "openai_chat",
    "/messages": "anthropic_messages",
    "/embeddings": "openai_embeddings",
    "/completions": "openai_completions",
    "/moderations": "openai_moderations",
    "/rerank": "cohere_rerank",
    "/images/generations": "openai_image_generation",
    "/images/edits": "openai_image_edits",
    "/images/variations": "openai_image_variations",
    "/audio/transcriptions": "openai_transcriptions",
    "/audio/translations": "openai_translations",
    "/audio/speech": "openai_speech",
}


_JSON: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})
_TEXT: Mapping[str, str] = MappingProxyType({"content-type": "text/plain; charset=utf-8"})


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


async def answer(method: str, path: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> SandboxAnswer:
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
        call = dialect.decode(body, {name.lower(): value for name, value in headers.items()})
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
    if call.answer_form == "binary":
        return SandboxAnswer(headers={"content-type": "audio/wav"}, stream=_streamed(spoken(call), cut=behaviour.cut))
    whole = WHOLE_ANSWERS.get(dialect.operation)
    if whole is not None:
        body = whole(call)
    else:
        completion = complete(dialect.to_internal(call), behaviour)
        if call.stream:
            events = _events(dialect, call, completion)
            stream = _garbage() if behaviour.garbage else _streamed(events, cut=behaviour.cut)
            return SandboxAnswer(headers={"content-type": "text/event-stream"}, stream=stream)
        body = (
            _text_completions(call, behaviour)
            if dialect.operation == "completions"
            else dialect.render_reply(completion, call)
        )
    if behaviour.garbage:
        return SandboxAnswer(body=GARBAGE)
    headers = _TEXT if call.answer_form == "text" else _JSON
    return SandboxAnswer(headers=headers, body=body, cut=behaviour.cut)


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
        elif isinstance(part, Reasoning):
            yield from map(ReasoningDelta, pieces(part.text))
            if part.signature is not None:
                yield ReasoningSigned(part.signature, is_sealed=part.is_sealed)
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


def _text_completions(call: ModelCall, behaviour: Behaviour) -> bytes:
    """Return the answer to a text completion with any number of prompts and choices."""
    dialect, prompt = DIALECTS[call.dialect], call.body["prompt"]
    answer: dict[str, Any] = {}
    choices: list[Any] = []
    tokens = [0, 0]
    for text in [prompt] if isinstance(prompt, str) else prompt:
        one = msgspec.structs.replace(call, body={**call.body, "prompt": text})
        answer = msgspec.json.decode(dialect.render_reply(complete(dialect.to_internal(one), behaviour), one))
        for _ in range(min(call.body.get("n") or 1, MAX_CHOICES)):
            choices.append({**answer["choices"][0], "index": len(choices)})
            tokens[1] += answer["usage"]["completion_tokens"]
        tokens[0] += answer["usage"]["prompt_tokens"]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return msgspec.json.encode({**answer, "choices": choices, "usage": usage})


def _models() -> bytes:
    # The fields of both formats, so that clients of either can read the list.
    models = [
        {
            "id": name,
            "object": "model",
            "created": CREATED_SECONDS,
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
