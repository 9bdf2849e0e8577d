"""Decodes providers' answers. Raises `NotConvertible` for an answer that does not conform to its dialect."""

from typing import Any, Generic, TypeVar

import msgspec

from gatehouse.engine.conversation.errors import NotConvertible

T = TypeVar("T")

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except _UNREADABLE as error:
        raise NotConvertible(str(error)) from None


class UsageReader(Generic[T]):
    """Reads the usage from a complete answer that is passed through. An answer without the field `required` is
    invalid."""

    def __init__(self, required: str, shape: type[T]) -> None:
        answer = msgspec.defstruct("Answer", [(required, msgspec.Raw)], gc=False)
        self._answer = msgspec.json.Decoder(answer)
        usage_field: list[tuple[str, Any, Any]] = [("usage", shape | None, None)]
        self._with_usage: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            msgspec.defstruct("AnswerWithUsage", usage_field, bases=(answer,), kw_only=True, gc=False)
        )

    def __call__(self, body: bytes) -> T | None:
        """Return the usage, or None if it is missing or invalid: the answer is valid without it. Raises
        `NotConvertible`."""
        try:
            usage: T | None = self._with_usage.decode(body).usage
        except _UNREADABLE:
            decode(self._answer, body)
            return None
        return usage


def check_text(body: bytes) -> None:
    """Check an answer that is plain text. Raises `NotConvertible` if it is not encoded as UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise NotConvertible(str(error)) from None
