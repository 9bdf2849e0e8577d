"""Names the fields of a client's request that a conversion cannot express, for the header `X-Gateway-Dropped`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.system_messages import has_later
from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.form import (
    Document,
    EmbeddingsRequest,
    Image,
    Part,
    Reasoning,
    Request,
    ToolCall,
    ToolResult,
)
from gatehouse.engine.conversation.usage import Usage

HEADER: Final = "X-Gateway-Dropped"
#: bounds of the header
MAX_NAMES: Final = 32
MAX_CHARACTERS: Final = 512
#: ends a header that does not name all lost fields
_MORE: Final = "..."
_any: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]{0,63}\Z")
#: replaces a name that does not have the form of a field's name, because it could be any text
_UNPRINTABLE: Final = "?"
#: The only dialect whose answers name the stop sequence that ended them. Its usage has no tokens of reasoning.
_NAMES_STOP_SEQUENCE: Final = "anthropic_messages"
#: fields of `Sampling`, and optional fields of `Request`, that not all APIs have
_SAMPLING: Final = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "stop")
_OPTIONS: Final = ("user", "prompt_cache_key", "response_format", "effort", "betas")
#: values with which a field has no effect, in addition to null, false and empty values
_HARMLESS: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "top_logprobs": (0,),
    "service_tier": ("auto", "default", "standard", "standard_only"),
    "truncation": ("disabled",),
    "modalities": (["text"],),
    "citations": ({"enabled": False},),
    "function_call": ("none", "auto"),
}


def unread(body: Mapping[str, Any], fields: frozenset[str], prefix: str = "") -> dict[str, None]:
    """Return the names of an object's members that are not in `fields` and have an effect."""
    return {prefix + name: None for name, value in body.items() if name not in fields and _has_effect(name, value)}


def features(request: Request) -> Iterator[str]:
    """Yields the features that a request uses and that not all APIs have."""
    yield from (name for name in _SAMPLING if getattr(request.sampling, name) not in (None, ()))
    yield from (name for name in _OPTIONS if getattr(request, name) not in (None, ()))
    if request.effort is not None and request.effort.budget_tokens is not None:
        yield "effort_budget"
    if request.returns_reasoning:
        yield "returned_reasoning"
    if request.tools:
        yield from _of_tools(request)
    if request.response_format is not None:
        if request.response_format.strict:
            yield "format_strict"
        yield from (
            f"format_{name}" for name in ("name", "description") if getattr(request.response_format, name) is not None
        )
    if has_later(request.messages):
        yield "later_system"
    yield from {name: None for message in request.messages for part in message.parts for name in _of_part(part)}


def lost_fields(
    request: Request | EmbeddingsRequest,
    unwritten: frozenset[str],
    extra_fields: frozenset[str],
    feature_fields: Mapping[str, str],
) -> Iterator[str]:
    """Yields the names of the client's fields that a converted body does not express. `unwritten` and `extra_fields`
    are those of the provider's dialect, `feature_fields` those of the client's."""
    yield from request.lost
    if isinstance(request, EmbeddingsRequest):
        return
    yield from unread(request.extra, extra_fields)
    for feature in features(request):
        if feature not in unwritten:
            continue
        if feature == "effort" and request.effort is not None:
            yield from request.effort.fields
        elif name := feature_fields.get(feature, feature):
            yield name


def usage_details(usage: bytes, kept: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the numbers in a provider's usage that are above zero and not in `kept`. `usage` is JSON: an
    object whose members are numbers and objects of numbers. Raises `NotConvertible`."""
    decoded = decode(_any, usage)
    members = dict(decoded) if isinstance(decoded, dict) else {}
    for details in list(members.values()):
        if isinstance(details, dict):
            members |= details
    return tuple(
        f"answer.usage.{name}"
        for name, value in members.items()
        if type(value) is int and value > 0 and name not in kept
    )


def unshown(dialect: str, stop_sequence: str | None, usage: Usage | None) -> tuple[str, ...]:
    """Return the names of the parts of an answer that the client's dialect has no field for."""
    if dialect == _NAMES_STOP_SEQUENCE:
        return ("answer.usage.reasoning_tokens",) if usage is not None and usage.reasoning_tokens else ()
    return () if stop_sequence is None else ("answer.stop_sequence",)


def header(names: Iterable[str]) -> str:
    """Return the header's value; empty if no field is lost."""
    shown: dict[str, None] = {}
    length = 0
    for name in names:
        printable = name if name == _MORE or _NAME.match(name) else _UNPRINTABLE
        if printable in shown:
            continue
        length += len(printable) + 1
        if len(shown) == MAX_NAMES or length > MAX_CHARACTERS - len(_MORE):
            shown[_MORE] = None
            break
        shown[printable] = None
    return ",".join(shown)


def extended(value: str, names: Iterable[str]) -> str:
    """Return the header's value with more names. If names were already left out, the value stays as it is."""
    return value if value.endswith(_MORE) else header((*filter(None, value.split(",")), *names))


def _of_tools(request: Request) -> Iterator[str]:
    if request.tool_choice is not None:
        yield "tool_choice"
    if request.parallel_tool_calls is not None:
        yield "parallel_tool_calls"
    if any(tool.strict for tool in request.tools):
        yield "strict"


def _of_part(part: Part) -> Iterator[str]:
    match part:
        case Reasoning():
            yield "reasoning"
        case Image(detail=str()):
            yield "detail"
        case Document(name=str()):
            yield "document_name"
        case ToolCall(signature=str()):
            yield "signature"
        case ToolResult():
            if part.is_error:
                yield "is_error"
            for item in part.content:
                yield from _of_part(item)


def _has_effect(name: str, value: Any) -> bool:
    if value is None or value is False or value in ("", [], {}):
        return False
    return value not in _HARMLESS.get(name, ())
