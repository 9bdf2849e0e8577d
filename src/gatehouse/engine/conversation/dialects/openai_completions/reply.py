"""Converts the answer of a chat, whole or streamed, to a text completion."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.usage import usage_fields
from gatehouse.engine.conversation.form import (
    Completion,
    Delta,
    GenerationFinished,
    StreamEnded,
    StreamStarted,
    Text,
    TextDelta,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import frame


def wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options") or {}
    return options.get("include_usage") is True


def prompt_of(body: Mapping[str, Any]) -> str:
    """Return the prompt of a call with a single prompt."""
    prompt = body["prompt"]
    return prompt if isinstance(prompt, str) else str(prompt[0])


def write(completion: Completion, body: Mapping[str, Any]) -> bytes:
    text = "".join(part.text for part in completion.parts if isinstance(part, Text))
    answer: dict[str, Any] = {
        "id": completion.id,
        "object": "text_completion",
        "created": completion.created or int(time.time()),
        "model": completion.model,
        "choices": [_choice(_echo(body) + text, completion.finish)],
    }
    if completion.usage is not None:
        answer["usage"] = usage_fields(completion.usage)
    return msgspec.json.encode(answer)


def _echo(body: Mapping[str, Any]) -> str:
    """Return the prompt if the client requested with `echo` that the answer begin with it, else an empty text."""
    return prompt_of(body) if body.get("echo") else ""


def _choice(text: str, finish: str | None) -> dict[str, Any]:
    # Text completions call no tools.
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop" if finish == "tool_calls" else finish}


class Writer:
    """A `StreamWriter`. If the client requested the usage, the last chunk has it."""

    __slots__ = ("_created", "_echo", "_id", "_model", "_send_usage", "_usage")

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._echo = _echo(body)
        self._send_usage = wants_usage(body)
        self._usage: Any = None
        self._id = ""
        self._model = ""
        self._created = int(time.time())

    def write(self, delta: Delta) -> bytes:
        match delta:
            case StreamStarted():
                self._id, self._model = delta.id, delta.model
                self._created = delta.created or self._created
                return self._chunk([_choice(self._echo, None)])
            case TextDelta():
                return self._chunk([_choice(delta.text, None)])
            case GenerationFinished():
                return self._chunk([_choice("", delta.reason)])
            case UsageDelta():
                self._usage = usage_fields(delta.usage)
                return b""
            case StreamEnded():
                has_usage = self._send_usage and self._usage is not None
                return (self._chunk([], usage=self._usage) if has_usage else b"") + frame(b"[DONE]")
            case _:
                return b""

    def _chunk(self, choices: list[Any], **more: Any) -> bytes:
        chunk = {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._model,
            "choices": choices,
            **more,
        }
        return frame(msgspec.json.encode(chunk))
