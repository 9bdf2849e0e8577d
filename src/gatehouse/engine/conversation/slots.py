"""The texts of a decoded body, of any dialect, and how to replace them.

Every string is looked at, known field or not: what the gateway does not know goes on to the provider all the same.
Left out are only words of the protocol (`role`, `type`, ids), which a client cannot fill with text and be understood.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

#: Words of the protocol. `signature` and `encrypted_content` are the provider's own, checked by it.
_STRUCTURAL: Final = frozenset(
    [
        "model",
        "role",
        "type",
        "id",
        "object",
        "index",
        "finish_reason",
        "stop_reason",
        "tool_call_id",
        "tool_use_id",
        "call_id",
        "created",
        "media_type",
        "system_fingerprint",
        "service_tier",
        "encoding_format",
        "format",
        "detail",
        "mime_type",
        "signature",
        "encrypted_content",
    ]
)
#: Text that is JSON: what a model wrote as a tool's arguments.
_JSON_TEXT: Final = frozenset({"arguments", "partial_json"})
#: Fields that hold bytes as base64, beside something that says of what kind.
_BYTES: Final = frozenset({"data", "file_data", "b64_json"})
_SAYS_KIND: Final = frozenset({"media_type", "mime_type", "format", "filename"})
#: Names of fields that hold nothing but their meaning: a value used as a name has digits, or what no name has.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]+\Z")
#: Numbers shorter than this are no identifiers.
_SHORT_NUMBER: Final = 1_000_000


class Slot(msgspec.Struct, gc=False):
    """One text. `holder[key]` is where it stands. `is_key`: the text is the name of a field of `holder`. `is_object`:
    it is an object written as JSON, as a stream brings it: a number is told by its field's name."""

    holder: Any
    key: Any
    text: str
    json_text: bool = False
    is_key: bool = False
    is_object: bool = False

    def replace(self, text: str) -> None:
        if self.is_object:
            self.holder[self.key] = msgspec.json.decode(text)
        elif self.is_key:
            # In place, so that the order of the fields stays.
            renamed = [(text if name == self.key else name, value) for name, value in self.holder.items()]
            self.holder.clear()
            self.holder.update(renamed)
        else:
            self.holder[self.key] = text


class Unseen(msgspec.Struct, frozen=True, gc=False):
    """Something that no tier can read: `kind` is `image`, `audio`, `file` or `tokens`."""

    kind: str


def slots(body: dict[str, Any]) -> Iterator[Slot | Unseen]:
    """All texts of a body in the order in which they stand, and what cannot be read."""
    # An own stack: a recursive generator would pay for every level at every text.
    stack: list[tuple[Any, Iterator[tuple[Any, Any]], str, bool]] = [(body, iter(list(body.items())), "", True)]
    while stack:
        holder, items, name, is_object = stack[-1]
        for key, value in items:
            field = key if is_object else name
            if is_object and not _PLAIN_NAME.match(key):
                yield Slot(holder, key, key, is_key=True)
            kind = type(value)
            if kind is str:
                if field in _STRUCTURAL or not value:
                    continue
                if is_object and (unseen := _bytes(holder, key, value)) is not None:
                    yield unseen
                else:
                    yield Slot(holder, key, value, json_text=field in _JSON_TEXT)
            elif kind is dict:
                if key == "input" and str(holder.get("type")).endswith("tool_use"):
                    written = msgspec.json.encode(value).decode()
                    yield Slot(holder, key, written, json_text=True, is_object=True)
                    continue
                stack.append((value, iter(list(value.items())), field, True))
                break
            elif kind is list:
                if value and type(value[0]) is int and field == "input":
                    yield Unseen("tokens")
                    continue
                stack.append((value, iter(list(enumerate(value))), field, False))
                break
            elif kind is int and abs(value) >= _SHORT_NUMBER and len(stack) > 1 and field not in _STRUCTURAL:
                yield Slot(holder, key, str(value))
        else:
            stack.pop()


def _bytes(holder: Mapping[str, Any], key: str, value: str) -> Unseen | None:
    if value.startswith("data:") and ";base64," in value[:200]:
        return Unseen(_kind(value[5:200]))
    if key in _BYTES and (not _SAYS_KIND.isdisjoint(holder) or holder.get("type") == "base64"):
        said = next((holder[name] for name in ("media_type", "mime_type", "format") if name in holder), "")
        return Unseen(_kind(str(said)))
    return None


def _kind(media_type: str) -> str:
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") or media_type in {"wav", "mp3", "flac", "opus"} else "file"
