"""Finds the texts of a decoded body in any dialect, and replaces them.

Every string is inspected, including those in unknown fields, which go to the provider too. Three kinds of values are
exempt: protocol words (`role`, `type`), ids, and binary data. A field's name alone exempts nothing, because a client
can write any text under any name. The value must also have the form of a word or an id, or be binary.
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

#: fields that the provider signed or encrypted and verifies: inspected, but never changed
_SEALED_FIELDS: Final = frozenset({"signature", "encrypted_content", "encrypted_index", "thought_signature"})
#: fields with JSON text: a tool's arguments as a model wrote them
_JSON_TEXT_FIELDS: Final = frozenset({"arguments", "partial_json"})
_SPECIAL_FIELDS: Final = _SEALED_FIELDS | BYTES | {"model"}
_MEDIA_TYPE_FIELDS: Final = frozenset({"media_type", "mime_type", "mimeType", "format", "filename"})
_PLAIN_BASE64: Final = str.maketrans("-_", "+/", "\r\n=")
_BASE64: Final = (ascii_letters + digits + "+/=\r\n").encode()
_ANY_BASE64: Final = _BASE64 + b"-_"
#: fields with files in base64 that have no type beside them; `b64_json` is an image
_FILE_KEYS: Final = frozenset({"file_data", "b64_json"})
#: strings up to this length are always inspected
_MAX_SHORT_CHARACTERS: Final = 64
#: characters of base64 that are decoded to detect the content's type; a multiple of four
_DETECTED_CHARACTERS: Final = 1024
#: Ordinary names of fields, which need no inspection. Data used as a name has digits or other characters.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]+\Z")
#: bound of the cache of plain names
_MAX_CACHED_NAMES: Final = 4096
_plain_names: set[str] = set()
#: every token id of a vocabulary is below this
_MAX_TOKEN_ID: Final = 1_000_000
#: smaller numbers are not inspected: without context they look like times, counts and ids
_MIN_INSPECTED_NUMBER: Final = 10**12
#: fields of a request that contain JSON schemas (`_SCHEMAS`), at the top level
_SCHEMA_HOLDERS: Final = frozenset({"tools", "functions", "response_format", "text", "output_format", "output_config"})
#: items of the `input` of a responses request that declare tools
_DECLARING_ITEMS: Final = ("additional_tools", "tool_search_output")
_SCHEMAS: Final = frozenset({"parameters", "input_schema", "schema"})
#: keywords of a JSON schema whose values may be any number
_SCHEMA_NUMBERS: Final = frozenset(
    {
        "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength",
        "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains",
        "default", "const", "enum", "examples",
    }
)  # fmt: skip
#: values visited in one step of `slots_in_steps`
_STEP_VALUES: Final = 2048

#: An object or list on the path to a value: itself, its remaining members in this step, its field name, whether it is
#: an object, all its remaining members, and the number of members that were not begun before this step.
_Level: TypeAlias = tuple[Any, Iterator[tuple[Any, Any]], str, bool, Iterator[tuple[Any, Any]], int]


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """A file in base64: the string `holder[key]` from `start`. `media_type` is as the client declared it."""

    holder: Any
    key: Any
    start: int
    media_type: str

    @property
    def text(self) -> str:
        text: str = self.holder[self.key]
        return text

    def write(self, text: str, encoding: str) -> None:
        """Replaces the file by a text."""
        prefix = self.text[: self.start]
        self.holder[self.key] = prefix + b64encode(text.encode(encoding, "replace")).decode()


class Slot(msgspec.Struct, gc=False):
    """One text at `holder[key]`. `is_key`: the text is the name of a field of `holder`. `is_object`: the text is an
    object in JSON, as in a stream, so that a number has its field's name as context. `is_sealed`: the text cannot be
    changed, because the provider signed or encrypted it. `attachment`: the text comes from a file in base64, and is the
    base64 itself if `encoding` is None. `encoding`: the text is the file's content, which has this encoding.
    `is_extract`: the text was extracted from a document and cannot be changed."""

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
    """Replaces the text of each slot. Linear in the number of fields of objects with renamed fields: all new names of
    an object are set in one pass, which keeps the order of its fields."""
    #: objects and the new names of their fields, by the object's identity
    renamed: dict[int, tuple[dict[str, Any], dict[str, str]]] = {}
    for slot, text in replacements:
        if slot.is_key:
            renamed.setdefault(id(slot.holder), (slot.holder, {}))[1][slot.key] = text
        elif slot.attachment is not None and slot.encoding is not None:
            slot.attachment.write(text, slot.encoding)
        else:
            slot.holder[slot.key] = msgspec.json.decode(text) if slot.is_object else text
    # Values are set before names, because their slots have the old names.
    for holder, names in renamed.values():
        fields = [(names.get(name, name), value) for name, value in holder.items()]
        holder.clear()
        holder.update(fields)


class NonText(msgspec.Struct, frozen=True, gc=False):
    """Content that is not text. `kind` is `image`, `audio`, `file` or `tokens`, as the client declares it. `size` is
    its size in the body in bytes if it is a string. `attachment` is the file if it may be a document."""

    kind: str
    size: int = 0
    attachment: Attachment | None = None


def slots(body: Any, *, answer: bool = False, only: Any = None) -> Iterator[Slot | NonText]:
    """Return all texts of a body in order, and content that is not text. `answer`: the body, or part of an event, is
    from a provider. With `only`, a key of `body`, only the value at that key; `body` may then be a list."""
    return (slot for slot in slots_in_steps(body, answer=answer, only=only) if slot is not None)


def slots_in_steps(body: Any, *, answer: bool = False, only: Any = None) -> Iterator[Slot | NonText | None]:  # noqa: C901, PLR0912 - a call a value costs more
    """Yields the same as `slots`, and None after every few thousand visited values, so that the caller can let other
    work run."""
    # A stack is used, because a recursive generator would pass every text through all levels.
    first = iter(body.items() if only is None else [(only, body[only])])
    walked = len(body) if only is None else 1
    stack: list[_Level] = [(body, islice(first, _STEP_VALUES), "", type(body) is dict, first, walked)]
    plain = _plain_names
    while stack:
        # Items of a list have the field name of the list.
        holder, items, field, is_object, rest, remaining = stack[-1]
        for key, value in items:
            if is_object:
                field = key
                if key not in plain and not _is_plain(key):
                    yield Slot(holder, key, key, is_key=True)
            kind = type(value)
            # Most values are short words and numbers without a text: avoid function calls for those.
            if kind is str:
                if field in _SPECIAL_FIELDS:
                    yield from _special_slots(holder, key, field, value, top=len(stack) == 1)
                elif value and not (field in FORMS and FORMS[field].match(value)):
                    yield Slot(holder, key, value, json_text=field in _JSON_TEXT_FIELDS)
            elif kind is int or kind is float:
                if (value >= _MIN_INSPECTED_NUMBER or value <= -_MIN_INSPECTED_NUMBER) and (
                    answer or not _is_schema_number(stack, field)
                ):
                    yield _number_slot(holder, key, value)
            elif kind is dict:
                if key == "input" and _is_tool_input(holder):
                    yield _object_slot(holder, key, value)
                elif value:
                    rest, remaining = iter(value.items()), len(value)
                    stack.append((value, islice(rest, _STEP_VALUES), field, True, rest, remaining))
                    break
            elif kind is list:
                if field == "input" and _are_tokens(value):
                    yield NonText("tokens")
                elif value:
                    rest, remaining = iter(enumerate(value)), len(value)
                    stack.append((value, islice(rest, _STEP_VALUES), field, False, rest, remaining))
                    break
        else:
            stack.pop()
            if remaining > _STEP_VALUES:
                stack.append((holder, islice(rest, _STEP_VALUES), field, is_object, rest, remaining - _STEP_VALUES))
                yield None
            continue
        walked += remaining
        if walked > _STEP_VALUES:
            walked = 0
            yield None


def _is_plain(name: str) -> bool:
    """Return whether a field's name is ordinary. Names repeat, so a bounded number is cached."""
    if _PLAIN_NAME.match(name) is None:
        return False
    if len(_plain_names) < _MAX_CACHED_NAMES and len(name) <= _MAX_SHORT_CHARACTERS:
        _plain_names.add(name)
    return True


def _object_slot(holder: Any, key: Any, value: Any) -> Slot:
    """Return a slot for a whole object as JSON."""
    return Slot(holder, key, msgspec.json.encode(value).decode(), json_text=True, is_object=True)


def _is_tool_input(holder: Any) -> bool:
    kind = holder.get("type") if type(holder) is dict else None
    return type(kind) is str and kind.endswith("tool_use")


def _special_slots(holder: Any, key: Any, field: str, value: str, *, top: bool) -> Sequence[Slot | NonText]:
    """Return the slots of a string in a field that may contain something other than text."""
    if not value:
        return ()
    if key == field:
        # Not forwarded: the provider gets the catalog's name.
        if top and key == "model":
            return ()
        if _is_sealed(holder, key, value):
            return (Slot(holder, key, value, is_sealed=True),)
        if key in BYTES and (attachment := _attachment(holder, key, value)) is not None:
            return _file_slots(attachment, value)
    return (Slot(holder, key, value),)


def _is_sealed(holder: Mapping[str, Any], key: str, value: str) -> bool:
    named = key in _SEALED_FIELDS and ("type" in holder or key == "thought_signature")
    return (
        (named or holder.get("type") == "redacted_thinking")
        and len(value) > _MAX_SHORT_CHARACTERS
        and _is_made_of(_ANY_BASE64, value)
    )


def _are_tokens(values: list[Any]) -> bool:
    return bool(values) and set(map(type, values)) == {int} and max(values) < _MAX_TOKEN_ID and min(values) >= 0


def _is_schema_number(stack: Sequence[_Level], field: str) -> bool:
    """Return whether a request's number is a value of a JSON schema's keyword. `field` is its name or that of its
    list."""
    # Check the number's own name first, so that a body of a million numbers does not search the stack for each.
    if field not in _SCHEMA_NUMBERS or len(stack) == 1:
        return False
    is_declared = stack[1][2] in _SCHEMA_HOLDERS or _is_declared_by_item(stack)
    return is_declared and any(level[2] in _SCHEMAS for level in stack)


def _is_declared_by_item(stack: Sequence[_Level]) -> bool:
    """Return whether a value is in a tool that an item of a responses request declares. Other requests have `messages`,
    and their `input` is an unknown field."""
    if len(stack) <= 3 or stack[1][2] != "input" or stack[3][2] != "tools":
        return False
    body, items, item = stack[0][0], stack[1][0], stack[2][0]
    is_responses = type(body) is dict and "messages" not in body
    return is_responses and type(items) is list and type(item) is dict and item.get("type") in _DECLARING_ITEMS


def _number_slot(holder: Any, key: Any, value: float) -> Slot:
    whole = int(value)
    return Slot(holder, key, str(whole) if whole == value else repr(value))


def _attachment(holder: Mapping[str, Any], key: str, value: str) -> Attachment | None:
    """Return the file in a string, or None for other strings."""
    start = 0
    if value[:5].lower() == "data:":
        head, comma, _ = value.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            return None
        start, media_type = len(head) + 1, head[5:-7].lower()
    elif (
        key in _FILE_KEYS
        or holder.get("type") == "base64"
        or (holder.get("type") != "text" and not _MEDIA_TYPE_FIELDS.isdisjoint(holder))
    ):
        declared = next(
            (holder[name] for name in ("media_type", "mime_type", "mimeType", "format") if name in holder), ""
        )
        media_type = declared if type(declared) is str else ""
        if key == "b64_json":
            media_type = media_type or "image/"
    else:
        return None
    data = value[start:] if start else value
    return Attachment(holder, key, start, media_type) if _is_made_of(_ANY_BASE64, data) else None


def _file_slots(attachment: Attachment, value: str) -> Sequence[Slot | NonText]:
    """Return the slots of a file, classified by its content: a client may declare a text as an image. A short file, or
    one with characters outside standard base64, is also inspected as a string."""
    string = Slot(attachment.holder, attachment.key, value)
    is_short = len(value) <= _MAX_SHORT_CHARACTERS
    is_string = is_short or not _is_made_of(_BASE64, value[attachment.start :])
    if _begins_like_text(value[attachment.start : attachment.start + _DETECTED_CHARACTERS]):
        if not is_string:
            string.attachment = attachment
        return (string,)
    # A file this short cannot be a document.
    unseen = NonText(_kind(attachment.media_type), len(value), None if is_short else attachment)
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
