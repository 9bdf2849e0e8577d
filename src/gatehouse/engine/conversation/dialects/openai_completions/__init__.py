"""OpenAI's legacy text completions API. For a provider without it, a call is converted to a chat."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.answers import UsageReader
from gatehouse.engine.conversation.decoding.bodies import CallShape, decode_call
from gatehouse.engine.conversation.decoding.optional_fields import integer, number, text, texts
from gatehouse.engine.conversation.dialect import NO_HEADERS, NOTHING_LOST
from gatehouse.engine.conversation.dialects.envelope import openai_body, openai_event
from gatehouse.engine.conversation.dialects.openai_chat.shape import Positive
from gatehouse.engine.conversation.dialects.openai_chat.tap import ChatTap
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.dialects.openai_completions import reply
from gatehouse.engine.conversation.dialects.openai_completions.view import growth, view
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Completion, FormMessage, Reasoning, Request, Sampling, Text
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal

#: maximum number of prompts of a call
MAX_PROMPTS: Final = 128
#: fields that are converted, or do not concern the provider
_CONVERTED_FIELDS: Final = frozenset({
    "best_of", "echo", "frequency_penalty", "max_tokens", "model", "n", "presence_penalty", "prompt", "seed", "stop",
    "stream", "stream_options", "suffix", "temperature", "top_k", "top_p", "user",
})  # fmt: skip
#: fields of this dialect; other fields are extensions of a provider
_DIALECT_FIELDS: Final = _CONVERTED_FIELDS | {"logit_bias", "logprobs"}


class CompletionsShape(CallShape, gc=False, kw_only=True):
    prompt: str | Annotated[list[Any], msgspec.Meta(min_length=1, max_length=MAX_PROMPTS)]
    stream_options: dict[str, Any] | None = None
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    n: Positive | None = None
    best_of: Positive | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None


_usage_in = UsageReader("choices", UsageShape)


class OpenAICompletions:
    name = "openai_completions"
    operation: Literal["completions"] = "completions"
    extra_fields: frozenset[str] = frozenset()
    feature_fields: Mapping[str, str] = {}

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, CompletionsShape)
        prompt = call.body["prompt"]
        if not isinstance(prompt, str) and not all(isinstance(item, str) for item in prompt):
            raise InvalidField(
                "prompt", "`prompt` must be a string or a list of strings. Prompts of token ids cannot be inspected."
            )
        return call

    def prepend_instructions(self, body: dict[str, Any], text_: str) -> None:
        if body.get("echo"):
            raise InvalidField(
                "echo", "`echo` is not available: your organization adds instructions to prompts. Leave it out."
            )
        prompt = body["prompt"]
        if isinstance(prompt, str):
            body["prompt"] = f"{text_}\n\n{prompt}"
        else:
            body["prompt"] = [f"{text_}\n\n{item}" for item in prompt]

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        body = {**call.body, "model": model}
        if call.stream and not reply.wants_usage(call.body):
            body["stream_options"] = {**(call.body.get("stream_options") or {}), "include_usage": True}
        return body, NOTHING_LOST

    def tap(self, call: ModelCall, model: str, provider: str = "") -> ChatTap:
        # `forward` requests the usage if the client does not.
        return ChatTap(call.model, withhold_usage=not reply.wants_usage(call.body))

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(_usage_in(body))

    def refuse_unconvertible(self, call: ModelCall) -> None:
        body = call.body
        if isinstance(body["prompt"], list) and len(body["prompt"]) > 1:
            raise InvalidField("prompt", "`prompt`: this provider accepts only one prompt in a call.")
        if body.get("suffix"):
            raise InvalidField("suffix", "`suffix` is not supported by this provider, which cannot insert text.")
        if body.get("max_tokens") == 0:
            raise InvalidField(
                "max_tokens", "`max_tokens` must be at least 1: this provider cannot return an empty answer."
            )
        for field in ("n", "best_of"):
            choices = integer(body, field)
            if choices is not None and choices > 1:
                raise InvalidField(field, f"`{field}` must be 1: this provider returns one answer for a call.")

    def to_internal(self, call: ModelCall) -> Request:
        body = call.body
        return Request(
            model=call.model,
            stream=call.stream,
            messages=(FormMessage("user", (Text(reply.prompt_of(body)),)),),
            user=text(body, "user"),
            extra={name: value for name, value in body.items() if name not in _DIALECT_FIELDS},
            sampling=Sampling(
                max_tokens=integer(body, "max_tokens"),
                temperature=number(body, "temperature"),
                top_p=number(body, "top_p"),
                top_k=integer(body, "top_k"),
                seed=integer(body, "seed"),
                frequency_penalty=number(body, "frequency_penalty"),
                presence_penalty=number(body, "presence_penalty"),
                stop=texts(body, "stop"),
            ),
            lost=tuple(unread(body, _CONVERTED_FIELDS | (body.keys() - _DIALECT_FIELDS))),
        )

    def render_reply(self, answer: Completion, call: ModelCall) -> bytes:
        return reply.write(answer, call.body)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return True

    def stream_writer(self, call: ModelCall) -> reply.Writer:
        return reply.Writer(call.body)

    def view(self, event: bytes) -> EventView | None:
        return view(event)

    def growth(self, event: bytes) -> Growth | None:
        return growth(event)

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return openai_event(error)

    # Providers receive this dialect only from clients of the same dialect, so the provider side converts nothing.

    def from_internal(self, request: Any) -> NoReturn:
        _never_converted()

    def unwritten(self, request: Any) -> NoReturn:
        _never_converted()

    def parse_reply(self, body: bytes) -> NoReturn:
        _never_converted()

    def stream_reader(self) -> NoReturn:
        _never_converted()


def _never_converted() -> NoReturn:
    raise NotConvertible("no call is converted to a text completion")
