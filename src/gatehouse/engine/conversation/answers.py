"""A provider's bytes to structs. What is not as its dialect says is `NotConvertible`."""

from typing import Any, Generic, TypeVar

import msgspec

from gatehouse.engine.conversation.errors import NotConvertible

T = TypeVar("T")

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except _UNREADABLE as error:
        raise NotConvertible(str(error)) from None


class UsageIn(Generic[T]):
    """Finds the usage in a whole answer that passes as it is. `required` is the field without which it is none."""

    def __init__(self, required: str, shape: type[T]) -> None:
        answer = msgspec.defstruct("Answer", [(required, msgspec.Raw)], gc=False)
        self._answer = msgspec.json.Decoder(answer)
        told: list[tuple[str, Any, Any]] = [("usage", shape | None, None)]
        self._with_usage: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            msgspec.defstruct("AnswerWithUsage", told, bases=(answer,), kw_only=True, gc=False)
        )

    def __call__(self, body: bytes) -> T | None:
        """Raises `NotConvertible`. Usage that makes no sense is none told: the answer is good without it."""
        try:
            usage: T | None = self._with_usage.decode(body).usage
        except _UNREADABLE:
            decoded(self._answer, body)
            return None
        return usage
