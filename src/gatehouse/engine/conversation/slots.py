"""The texts of a decoded body, of any dialect, and how to replace them.

Every string is looked at, known field or not: what the gateway does not know goes on to the provider all the same.
Left out are only words of the protocol (`role`, `type`) and ids, where they have the form of such, and bytes, where
they are bytes: a client can write what it likes under any name.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from string import ascii_letters, digits
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.detection.documents.encodings import begins_like_text
from gatehouse.engine.conversation.uninspected import BYTES, FORMS

#: What the provider signed or encrypted, and checks: read, but never changed.
_SEALED: Final = frozenset({"signature", "encrypted_content", "encrypted_index", "thought_signature"})
#: Text that is JSON: what a model wrote as a tool's arguments.
_JSON_TEXT: Final = frozenset({"arguments", "partial_json"})
_SPECIAL: Final = _SEALED | BYTES | {"model"}
_SAYS_KIND: Final = frozenset({"media_type", "mime_type", "format", "filename"})
_PLAIN_BASE64: Final = str.maketrans("-_", "+/", "\r\n=")
_BASE64: Final = (ascii_letters + digits + "+/=\r\n").encode()
_ANY_BASE64: Final = _BASE64 + b"-_"
#: What is no longer than this is looked at in any case.
_FEW: Final = 64
#: Code points of base64 that are decoded to tell what they are. A multiple of four.
_BEGINNING: Final = 1024
#: Names of fields that hold nothing but their meaning: a value used as a name has digits, or what no name has.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]+\Z")
_MOST_NAMES: Final = 4096
_plain_names: set[str] = set()
#: A token of a vocabulary is less.
_MOST_TOKENS: Final = 1_000_000
#: Nothing stands beside a number that could say what it is: shorter ones look like times, counts and ids.
_SHORT_NUMBER: Final = 10**12
#: Where a request holds a JSON schema: a field at its top, and one below it.
_SCHEMA_HOLDERS: Final = frozenset({"tools", "functions", "response_format", "text", "output_format", "output_config"})
_SCHEMAS: Final = frozenset({"parameters", "input_schema", "schema"})
#: A schema's bounds and values, which may be any number.
_SCHEMA_NUMBERS: Final = frozenset(
    {
        "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength",
        "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains",
        "default", "const", "enum", "examples",
    }
)  # fmt: skip
#: Values that are walked over in one step of `slots_in_steps`.
_STEP: Final = 2048

#: An object or a list on the way to a value: itself, what is left of its members in this step, the field that it stands
#: under, whether it is an object, all that is left of its members, and how many were not begun before this step.
_Level: TypeAlias = tuple[Any, Iterator[tuple[Any, Any]], str, bool, Iterator[tuple[Any, Any]], int]


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """A file in base64: what the string `holder[key]` holds from `start` on. `media_type` is the client's word."""

    holder: Any
    key: Any
    start: int
    media_type: str

    @property
    def text(self) -> str:
        text: str = self.holder[self.key]
        return text

    def write(self, text: str, encoding: str) -> None:
        """Puts a text in the place of the file."""
        before = self.text[: self.start]
        self.holder[self.key] = before + b64encode(text.encode(encoding, "replace")).decode()


class Slot(msgspec.Struct, gc=False):
    """One text. `holder[key]` is where it stands. `is_key`: the text is the name of a field of `holder`. `is_object`:
    it is an object written as JSON, as a stream brings it: a number is told by its field's name. `is_sealed`: the
    provider signed or encrypted it, so that it cannot be changed. `attachment`: it is a file in base64. `encoding`:
    `text` is what that file holds, in this encoding. `is_extract`: it is out of a document, and cannot be changed."""

    holder: Any
    key: Any
    text: str
    json_text: bool = False
    is_key: bool = False
    is_object: bool = False
    is_sealed: bool = False
    attachment: Attachment | None = None
    encoding: str | None = None
    is_extract: bool = False


def replace_texts(replacements: Iterable[tuple[Slot, str]]) -> None:
    """Puts each text in the place of its slot. Linear in the fields of the objects in which it renames fields: all new
    names of an object are set in one pass, in which its fields keep their order."""
    #: an object and the new names of its fields, by the object's identity
    renamed: dict[int, tuple[dict[str, Any], dict[str, str]]] = {}
    for slot, text in replacements:
        if slot.is_key:
            renamed.setdefault(id(slot.holder), (slot.holder, {}))[1][slot.key] = text
        elif slot.attachment is not None and slot.encoding is not None:
            slot.attachment.write(text, slot.encoding)
        else:
            slot.holder[slot.key] = msgspec.json.decode(text) if slot.is_object else text
    # Values are set first: their slots name the fields as they were.
    for holder, names in renamed.values():
        fields = [(names.get(name, name), value) for name, value in holder.items()]
        holder.clear()
        holder.update(fields)


class Unseen(msgspec.Struct, frozen=True, gc=False):
    """Something that is no text: `kind` is `image`, `audio`, `file` or `tokens`, in the client's words; `size` what it
    takes of the body, in bytes, where it is a string. `attachment`: it may be a document."""

    kind: str
    size: int = 0
    attachment: Attachment | None = None


def slots(body: Any, *, answer: bool = False, only: Any = None) -> Iterator[Slot | Unseen]:
    """All texts of a body in the order in which they stand, and what cannot be read. `answer`: the body, or the part of
    an event, is a provider's. With `only`, a key of `body`, what stands there alone:
    `body` may be a list then."""
    return (each for each in slots_in_steps(body, answer=answer, only=only) if each is not None)


def slots_in_steps(body: Any, *, answer: bool = False, only: Any = None) -> Iterator[Slot | Unseen | None]:  # noqa: C901, PLR0912 - a call a value costs more
    """The same, and None where some thousand values were walked over, whether or not they are texts."""
    # An own stack: a recursive generator would pay for every level at every text.
    first = iter(body.items() if only is None else [(only, body[only])])
    walked = len(body) if only is None else 1
    stack: list[_Level] = [(body, islice(first, _STEP), "", type(body) is dict, first, walked)]
    plain = _plain_names
    while stack:
        # What is in a list stands under the list's name.
        holder, items, field, is_object, rest, left = stack[-1]
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
                elif value and not (field in FORMS and FORMS[field].match(value)):
                    yield Slot(holder, key, value, json_text=field in _JSON_TEXT)
            elif kind is int or kind is float:
                if (value >= _SHORT_NUMBER or value <= -_SHORT_NUMBER) and (
                    answer or not _is_schema_number(stack, field)
                ):
                    yield _number(holder, key, value)
            elif kind is dict:
                if key == "input" and _is_tool_input(holder):
                    yield _whole(holder, key, value)
                elif value:
                    rest, left = iter(value.items()), len(value)
                    stack.append((value, islice(rest, _STEP), field, True, rest, left))
                    break
            elif kind is list:
                if field == "input" and _are_tokens(value):
                    yield Unseen("tokens")
                elif value:
                    rest, left = iter(enumerate(value)), len(value)
                    stack.append((value, islice(rest, _STEP), field, False, rest, left))
                    break
        else:
            stack.pop()
            if left > _STEP:
                stack.append((holder, islice(rest, _STEP), field, is_object, rest, left - _STEP))
                yield None
            continue
        walked += left
        if walked > _STEP:
            walked = 0
            yield None


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
    kind = holder.get("type") if type(holder) is dict else None
    return type(kind) is str and kind.endswith("tool_use")


def _special(holder: Any, key: Any, field: str, value: str, *, top: bool) -> Sequence[Slot | Unseen]:
    """A string under a name that may say that it is no text."""
    if not value:
        return ()
    if key == field:
        # Never sent on: the provider is told the catalog's name.
        if top and key == "model":
            return ()
        if _is_sealed(holder, key, value):
            return (Slot(holder, key, value, is_sealed=True),)
        if key in BYTES and (attachment := _attachment(holder, key, value)) is not None:
            return _file(attachment, value)
    return (Slot(holder, key, value),)


def _is_sealed(holder: Mapping[str, Any], key: str, value: str) -> bool:
    named = key in _SEALED and ("type" in holder or key == "thought_signature")
    return (
        (named or holder.get("type") == "redacted_thinking") and len(value) > _FEW and _is_made_of(_ANY_BASE64, value)
    )


def _are_tokens(values: list[Any]) -> bool:
    return bool(values) and set(map(type, values)) == {int} and max(values) < _MOST_TOKENS and min(values) >= 0


def _is_schema_number(stack: Sequence[_Level], field: str) -> bool:
    """Whether a request's number is a schema's bound or value, and no text. `field` is its own name or its list's."""
    # First the number's own name: a body of a million numbers must not walk up the stack for each.
    if field not in _SCHEMA_NUMBERS or len(stack) == 1:
        return False
    return stack[1][2] in _SCHEMA_HOLDERS and any(level[2] in _SCHEMAS for level in stack)


def _number(holder: Any, key: Any, value: float) -> Slot:
    whole = int(value)
    return Slot(holder, key, str(whole) if whole == value else repr(value))


def _attachment(holder: Mapping[str, Any], key: str, value: str) -> Attachment | None:
    """None where it is a string like others."""
    start = 0
    if value[:5].lower() == "data:":
        head, comma, _ = value.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            return None
        start, media_type = len(head) + 1, head[5:-7].lower()
    elif (
        key == "file_data"
        or holder.get("type") == "base64"
        or (holder.get("type") != "text" and not _SAYS_KIND.isdisjoint(holder))
    ):
        named = next((holder[name] for name in ("media_type", "mime_type", "format") if name in holder), "")
        media_type = named if type(named) is str else ""
    else:
        return None
    data = value[start:] if start else value
    return Attachment(holder, key, start, media_type) if _is_made_of(_ANY_BASE64, data) else None


def _file(attachment: Attachment, value: str) -> Sequence[Slot | Unseen]:
    """Judged by what it is: a client may say of a text that it is an image. What is short, or has characters that files
    do not have, is a string, too."""
    string = Slot(attachment.holder, attachment.key, value)
    is_short = len(value) <= _FEW
    is_string = is_short or not _is_made_of(_BASE64, value[attachment.start :])
    if _begins_like_text(value[attachment.start : attachment.start + _BEGINNING]):
        if not is_string:
            string.attachment = attachment
        return (string,)
    # No document is that short.
    unseen = Unseen(_kind(attachment.media_type), len(value), None if is_short else attachment)
    return (unseen, string) if is_string else (unseen,)


def _is_made_of(alphabet: bytes, value: str) -> bool:
    return value.isascii() and not value.encode().translate(None, alphabet)


def _begins_like_text(beginning: str) -> bool:
    groups = beginning.translate(_PLAIN_BASE64)
    try:
        return begins_like_text(b64decode(groups + "=" * (-len(groups) % 4)))
    except ValueError:
        return False


def _kind(media_type: str) -> str:
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") or media_type in {"wav", "mp3", "flac", "opus"} else "file"
