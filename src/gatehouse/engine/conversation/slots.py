"""The texts of a decoded body, of any dialect, and how to replace them.

Every string is looked at, known field or not: what the gateway does not know goes on to the provider all the same.
Left out are only words of the protocol (`role`, `type`), where they are such words, and bytes, where they are bytes: a
client can write what it likes under any name.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_letters, digits
from typing import Any, Final

import msgspec

#: Fields that hold one of the protocol's words.
_WORDS: Final = frozenset(
    {
        "role",
        "type",
        "object",
        "finish_reason",
        "stop_reason",
        "media_type",
        "mime_type",
        "service_tier",
        "encoding_format",
        "format",
        "detail",
    }
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_./+-]{0,127}\Z")
#: What the provider signed or encrypted, and checks: not to be changed, nor to be read.
_SEALED: Final = frozenset({"signature", "encrypted_content", "encrypted_index", "thought_signature"})
#: Text that is JSON: what a model wrote as a tool's arguments.
_JSON_TEXT: Final = frozenset({"arguments", "partial_json"})
#: Fields that hold bytes as base64: in a `data:` URL, or beside something that says of what kind.
_BYTES: Final = frozenset({"data", "file_data", "b64_json", "url", "image_url", "file_url", "uri"})
_SPECIAL: Final = _SEALED | _BYTES | {"model"}
_SAYS_KIND: Final = frozenset({"media_type", "mime_type", "format", "filename"})
_PLAIN_BASE64: Final = str.maketrans("-_", "+/", "\r\n=")
_BASE64: Final = (ascii_letters + digits + "+/-_=\r\n").encode()
#: What is no longer than this is looked at in any case.
_FEW: Final = 64
#: Code points of base64 that are decoded to tell what they are. A multiple of four.
_BEGINNING: Final = 1024
#: What no text holds.
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
#: Names of fields that hold nothing but their meaning: a value used as a name has digits, or what no name has.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]+\Z")
_MOST_NAMES: Final = 4096
_plain_names: set[str] = set()
#: Numbers shorter than this are no identifiers.
_SHORT_NUMBER: Final = 1_000_000
#: Numbers at a body's top that are any number at all, up to 32 bits: a seed, a time.
_ANY_NUMBER: Final = frozenset({"seed", "created"})
_ANY_NUMBER_LIMIT: Final = 2**32


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
    """Something that no tier can read: `kind` is `image`, `audio`, `file` or `tokens`; `size` what it takes of the
    body, in bytes, where it is a string."""

    kind: str
    size: int = 0


def slots(body: dict[str, Any]) -> Iterator[Slot | Unseen]:  # noqa: C901, PLR0912 - a call a value costs more
    """All texts of a body in the order in which they stand, and what cannot be read."""
    # An own stack: a recursive generator would pay for every level at every text.
    stack: list[tuple[Any, Iterator[tuple[Any, Any]], str, bool]] = [(body, iter(list(body.items())), "", True)]
    plain = _plain_names
    while stack:
        # What is in a list stands under the list's name.
        holder, items, field, is_object = stack[-1]
        for key, value in items:
            if is_object:
                field = key
                if key not in plain and not _is_plain(key):
                    yield Slot(holder, key, key, is_key=True)
            kind = type(value)
            # Most values are short words and numbers without a text: nothing is called for those.
            if kind is str:
                if field in _SPECIAL:
                    yield from _special(holder, key, field, value, top=len(stack) == 1)
                elif value and not (field in _WORDS and _WORD.match(value)):
                    yield Slot(holder, key, value, json_text=field in _JSON_TEXT)
            elif kind is int or kind is float:
                if value >= _SHORT_NUMBER or value <= -_SHORT_NUMBER:
                    yield from _number(holder, key, value, top=len(stack) == 1)
            elif kind is dict:
                if key == "input" and _is_tool_input(holder):
                    yield _whole(holder, key, value)
                elif value:
                    stack.append((value, iter(list(value.items())), field, True))
                    break
            elif kind is list:
                if field == "input" and _are_tokens(value):
                    yield Unseen("tokens")
                elif value:
                    stack.append((value, iter(list(enumerate(value))), field, False))
                    break
        else:
            stack.pop()


def _is_plain(name: str) -> bool:
    """Whether a field's name holds nothing but its meaning. Names come again and again: a bounded number is known."""
    if _PLAIN_NAME.match(name) is None:
        return False
    if len(_plain_names) < _MOST_NAMES and len(name) <= _FEW:
        _plain_names.add(name)
    return True


def _whole(holder: Any, key: Any, value: Any) -> Slot:
    """What is looked at as a whole."""
    return Slot(holder, key, msgspec.json.encode(value).decode(), json_text=True, is_object=True)


def _is_tool_input(holder: Any) -> bool:
    return type(holder) is dict and str(holder.get("type")).endswith("tool_use")


def _special(holder: Any, key: Any, field: str, value: str, *, top: bool) -> Sequence[Slot | Unseen]:
    """A string under a name that may say that it is no text."""
    if not value:
        return ()
    if key == field:
        # Never sent on: the provider is told the catalog's name.
        if (top and key == "model") or _is_sealed(holder, key, value):
            return ()
        if key in _BYTES and (unseen := _bytes(holder, value)) is not None:
            return (unseen,) if len(value) > _FEW else (unseen, Slot(holder, key, value))
    return (Slot(holder, key, value),)


def _is_sealed(holder: Mapping[str, Any], key: str, value: str) -> bool:
    named = key in _SEALED and ("type" in holder or key == "thought_signature")
    return (named or holder.get("type") == "redacted_thinking") and len(value) > _FEW and _is_base64(value)


def _are_tokens(values: list[Any]) -> bool:
    return bool(values) and set(map(type, values)) == {int} and max(values) < _SHORT_NUMBER and min(values) >= 0


def _number(holder: Any, key: Any, value: float, *, top: bool) -> Sequence[Slot]:
    if top and key in _ANY_NUMBER and abs(value) < _ANY_NUMBER_LIMIT:
        return ()
    whole = int(value)
    return (Slot(holder, key, str(whole) if whole == value else repr(value)),)


def _bytes(holder: Mapping[str, Any], value: str) -> Unseen | None:
    """Judged by what they are: a client may say of a text that it is an image."""
    if value.startswith("data:"):
        head, _, data = value.partition(",")
        if not head.endswith(";base64"):
            return None
        said = head[5:-7]
    elif holder.get("type") == "base64" or (holder.get("type") != "text" and not _SAYS_KIND.isdisjoint(holder)):
        data = value
        said = str(next((holder[name] for name in ("media_type", "mime_type", "format") if name in holder), ""))
    else:
        return None
    if not _is_base64(data) or _is_encoded_text(data[:_BEGINNING]):
        return None
    return Unseen(_kind(said), len(value))


def _is_base64(value: str) -> bool:
    return value.isascii() and not value.encode().translate(None, _BASE64)


def _is_encoded_text(beginning: str) -> bool:
    """A text, which is read as such. A PDF may begin like one."""
    groups = beginning.translate(_PLAIN_BASE64)
    try:
        raw = b64decode(groups[: len(groups) // 4 * 4])
    except ValueError:
        return False
    # The last character may be cut through.
    text = raw.decode(errors="replace").rstrip("\ufffd")
    return not raw.startswith(b"%PDF") and "\ufffd" not in text and _NO_TEXT.search(text) is None


def _kind(media_type: str) -> str:
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") or media_type in {"wav", "mp3", "flac", "opus"} else "file"
