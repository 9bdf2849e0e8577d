"""The internal form of a model call, its answer and its stream, which all dialects are converted to and from.

Used only if client and provider use different dialects. Otherwise requests and answers are passed through.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from gatehouse.engine.conversation.usage import Usage

Role: TypeAlias = Literal["system", "user", "assistant"]
#: why a model stopped
Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]


class Text(msgspec.Struct, frozen=True):
    """A text. `refusal`: the model declines to answer."""

    text: str
    refusal: bool = False


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image: either `url`, or `data` in base64 with its `media_type`."""

    url: str | None = None
    data: str | None = None
    media_type: str | None = None
    detail: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A file such as a PDF: either `url`, or `data` in base64 with its `media_type`."""

    url: str | None = None
    data: str | None = None
    media_type: str | None = None
    name: str | None = None


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning of the model. `signature` is the provider's signature, which must be returned to the provider with the
    results of tools. With `is_sealed`, the provider shows no text, and `signature` is the encrypted reasoning.
    Reasoning in a request always has a signature."""

    text: str = ""
    signature: str | None = None
    is_sealed: bool = False


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call. `arguments` is JSON text as the model wrote it. `signature` is the provider's signature of the
    reasoning behind the call, which must be returned to the provider with the result."""

    id: str
    name: str
    arguments: str
    signature: str | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str
    content: "tuple[Content, ...]"
    is_error: bool = False


#: what a user or a tool sends
Content: TypeAlias = Text | Image | Document
Part: TypeAlias = Content | Reasoning | ToolCall | ToolResult


class FormMessage(msgspec.Struct, frozen=True):
    """A message. Results of tools are parts of a user's message."""

    role: Role
    parts: tuple[Part, ...]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """The effort that a client requests. `level` is `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or any
    other word that the client has sent. `budget_tokens` is the client's budget, if it has set one. `fields` has the
    names of the client's fields. `is_openai`: these are OpenAI's fields."""

    level: str
    budget_tokens: int | None = None
    fields: tuple[str, ...] = ()
    is_openai: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    messages: tuple[FormMessage, ...]
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    sampling: Sampling = Sampling()
    user: str | None = None
    effort: Effort | None = None
    #: whether the client shows the text of the reasoning
    shows_reasoning: bool = False
    #: whether the client sends signed reasoning back
    returns_reasoning: bool = False
    #: the catalog's capability `reasoning` of the model; None: unknown
    reasons: bool | None = None
    #: the catalog's limit for the model's answers
    max_output_tokens: int | None = None
    #: identifies requests with a common beginning, for OpenAI's cache of prompts
    prompt_cache_key: str | None = None
    #: features of Anthropic's API that the client enables by a header
    betas: tuple[str, ...] = ()
    #: fields of the request that its dialect does not define; a provider's dialect passes on those that it supports
    extra: dict[str, Any] = {}
    #: names of the client's fields that the internal form cannot express
    lost: tuple[str, ...] = ()


class EmbeddingsRequest(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None
    #: as in `Request`
    lost: tuple[str, ...] = ()


class Embeddings(msgspec.Struct, frozen=True, kw_only=True):
    """One vector for each text, in the order of the texts."""

    model: str
    vectors: tuple[tuple[float, ...], ...]
    usage: Usage | None = None


AnswerPart: TypeAlias = Text | Reasoning | ToolCall


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer. `created` is Unix time."""

    id: str
    model: str
    parts: "tuple[AnswerPart, ...]"
    finish: Finish
    usage: Usage | None = None
    created: int = 0
    stop_sequence: str | None = None
    #: names of the parts of the provider's answer that the internal form cannot express
    lost: tuple[str, ...] = ()


class StreamStarted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    model: str
    created: int = 0
    usage: Usage | None = None


class TextDelta(msgspec.Struct, frozen=True):
    text: str
    refusal: bool = False


class ReasoningDelta(msgspec.Struct, frozen=True):
    text: str


class ReasoningSigned(msgspec.Struct, frozen=True):
    """The end of one piece of reasoning. The fields are those of `Reasoning`."""

    signature: str
    is_sealed: bool = False


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a tool call. `index` counts the answer's tool calls from 0."""

    index: int
    id: str
    name: str
    signature: str | None = None


class ToolArguments(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    text: str


class GenerationFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The model has stopped; the usage may follow."""

    reason: Finish
    stop_sequence: str | None = None


class UsageDelta(msgspec.Struct, frozen=True):
    usage: Usage


class PartsLost(msgspec.Struct, frozen=True):
    """The provider has sent parts that the internal form cannot express. `names` are their names, as in
    `Completion.lost`."""

    names: tuple[str, ...]


class StreamEnded(msgspec.Struct, frozen=True):
    """The provider has ended the stream."""


class StreamFailed(msgspec.Struct, frozen=True):
    """The provider has ended the stream with an error. `message` is the provider's error message."""

    message: str


Delta: TypeAlias = (
    StreamStarted
    | TextDelta
    | ReasoningDelta
    | ReasoningSigned
    | ToolStarted
    | ToolArguments
    | GenerationFinished
    | UsageDelta
    | PartsLost
    | StreamEnded
    | StreamFailed
)
