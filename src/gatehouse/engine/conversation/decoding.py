"""A client's bytes to a checked dict. Everything that is wrong ends in a 400 that names the field, never in a 5xx.

The client's own bytes go on to a provider only where they say, in another spelling, what that dict says once every
stage is through, and nothing more.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import jiter
import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.errors import InvalidField, MalformedBody, NestedTooDeep

MAX_DEPTH = 100
MAX_MODEL_NAME = 256
MAX_FALLBACKS = 16

#: Fields and elements of a body that is read again, at most, so that it holds up others for four milliseconds at most.
_MOST_PARTS: Final = 10_000

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_as_it_stands: Final = msgspec.json.Encoder(enc_hook=lambda number: msgspec.Raw(bytes(number)))
#: A body as it goes to a provider.
encode: Final = msgspec.json.Encoder().encode
Shape = TypeVar("Shape", bound="CallShape")


class CallShape(msgspec.Struct, gc=False):
    """The fields that the gateway itself reads; a dialect adds its own. Unknown ones are not looked at."""

    model: str
    stream: bool | None = None
    fallbacks: list[str] | None = None


def decode_call(dialect: str, body: bytes, shape: type[CallShape]) -> ModelCall:
    """Raises `MalformedBody`, `NestedTooDeep` or `InvalidField`."""
    values = decode_object(body)
    checked = conform(values, shape)
    model = _model_name("model", checked.model)
    fallbacks: tuple[str, ...] = ()
    if "fallbacks" in values:
        fallbacks = _fallbacks(checked.fallbacks or ())
        del values["fallbacks"]
    return ModelCall(
        dialect=dialect,
        model=model,
        stream=checked.stream or False,
        body=values,
        came=body,
        fallbacks=fallbacks,
    )


def compact(came: bytes) -> bytes | None:
    """What a client's bytes say, written as `encode` writes it, but for numbers with a fraction, which stay as they
    came: they can hold more digits than were read. None where a field stands twice (the provider might read the other
    one, msgspec takes the last), and where telling would take long: each part stands behind a comma or a colon."""
    if came.count(b",") + came.count(b":") > _MOST_PARTS:
        return None
    try:
        told = jiter.from_json(came, cache_mode="keys", catch_duplicate_keys=True, float_mode="lossless-float")
    except ValueError:
        return None
    return _as_it_stands.encode(told)


def decode_object(body: bytes) -> dict[str, Any]:
    try:
        values = _decoder.decode(body)
    except RecursionError:
        raise NestedTooDeep from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedBody(f"The body is not valid JSON: {error}") from None
    if type(values) is not dict:
        raise MalformedBody
    # A body with few brackets cannot be deep; counting them is much cheaper than a walk.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _deeper_than(values, MAX_DEPTH):
        raise NestedTooDeep
    if b"\\u0000" in body:
        _refuse_nul(values, "")
    return values


def conform(values: dict[str, Any], shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise _named(str(error)) from None


def _named(text: str) -> InvalidField:
    """msgspec says "Expected `str`, got `int` - at `$.messages[0].role`"."""
    message, _, place = text.partition(" - at ")
    path = place.strip("`").removeprefix("$").removeprefix(".")
    if message.startswith("Object missing required field"):
        field = message.split("`")[1]
        path = f"{path}.{field}" if path else field
        return InvalidField(path, f"`{path}` is required.")
    return InvalidField(path or "body", f"`{path or 'body'}`: {message}.")


def _model_name(field: str, name: str) -> str:
    if not name or len(name) > MAX_MODEL_NAME or not name.isprintable():
        raise InvalidField(field, f"`{field}` must be 1 to {MAX_MODEL_NAME} printable characters.")
    return name


def _fallbacks(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MAX_FALLBACKS:
        raise InvalidField("fallbacks", f"`fallbacks` holds at most {MAX_FALLBACKS} models.")
    return tuple(_model_name(f"fallbacks[{index}]", name) for index, name in enumerate(names))


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        below: list[Any] = []
        for container in level:
            inner = container.values() if type(container) is dict else container
            below.extend(item for item in inner if type(item) is dict or type(item) is list)
        if not below:
            return False
        level = below
    return True


def _refuse_nul(value: Any, path: str) -> None:
    if type(value) is str:
        if "\0" in value:
            raise InvalidField(path, f"`{path}` holds a NUL character.")
    elif type(value) is list:
        for index, item in enumerate(value):
            _refuse_nul(item, f"{path}[{index}]")
    elif type(value) is dict:
        for key, item in value.items():
            if "\0" in key:
                raise InvalidField(path or "body", "A field's name holds a NUL character.")
            _refuse_nul(item, f"{path}.{key}" if path else key)
