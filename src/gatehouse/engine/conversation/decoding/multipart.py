"""Reads and writes bodies of the type `multipart/form-data` (RFC 7578).

A body is read once, in linear time. Files are views of the body, not copies. A form that two parsers could read
differently is refused: a value, a header or a parameter of a header occurs twice, or a part has a transfer encoding.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gatehouse.engine.conversation.call import FilePart
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.foundation.errors import BadRequest

MAX_PARTS: Final = 128
MAX_PART_HEADER_BYTES: Final = 4096
#: longest value of a part that is not a file
MAX_VALUE_BYTES: Final = 256 * 1024

_BOUNDARY: Final = re.compile(
    r'\A\s*multipart/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE | re.DOTALL
)
_PARAMETER: Final = re.compile(r';\s*([A-Za-z0-9*_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))')
_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63})((?:\[[A-Za-z0-9_-]{0,64}\]){0,3})\Z")
_KEY: Final = re.compile(r"\[([^\]]*)\]")
_MEDIA_TYPE: Final = re.compile(r"[a-z]+/[a-z0-9.+-]{1,64}\Z")
_EXTENSION: Final = re.compile(r"\.([A-Za-z0-9]{1,5})\Z")
_PLAIN_ENCODINGS: Final = frozenset({"", "7bit", "8bit", "binary"})
#: file extensions that are sent to the provider; nothing else of a file name is sent
_EXTENSIONS: Final = frozenset(
    {
        "png",
        "jpg",
        "jpeg",
        "gif",
        "webp",
        "mp3",
        "mp4",
        "mpeg",
        "mpga",
        "m4a",
        "wav",
        "webm",
        "ogg",
        "oga",
        "opus",
        "flac",
    }
)
_MAX_SHOWN_CHARACTERS: Final = 64


class MalformedForm(BadRequest):
    """The body is not a valid form."""

    code = "invalid_form"


class MultipartForm(NamedTuple):
    """A form. `values` has the parts that are not files: texts, lists of texts (`name[]`) and objects (`name[key]`)."""

    values: dict[str, Any]
    files: tuple[FilePart, ...]


def read_form(content_type: str | None, body: bytes) -> MultipartForm:
    """Return the form in a body. Raises `MalformedForm` or `InvalidField`, which name the part."""
    match = _BOUNDARY.match(content_type or "")
    if match is None:
        raise MalformedForm("This path takes a body of the type `multipart/form-data` with a `boundary`.")
    values: dict[str, Any] = {}
    files: list[FilePart] = []
    delimiter = b"--" + (match[1] or match[2]).encode("latin-1", "replace")
    for number, (head, data) in enumerate(_parts(body, delimiter), 1):
        if number > MAX_PARTS:
            raise MalformedForm(f"The form has more than {MAX_PARTS} parts.")
        _add(values, files, number, head, data)
    return MultipartForm(values, tuple(files))


def write_form(values: Mapping[str, Any], files: Sequence[FilePart]) -> tuple[bytes, str]:
    """Return the body of a form, and its content type."""
    boundary = secrets.token_hex(16)
    pieces: list[bytes | memoryview] = []
    for name, text in _flat(values):
        pieces.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode())
    for file in files:
        filename = file.name.removesuffix("[]") + (f".{file.extension}" if file.extension else "")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{file.name}"; filename="{filename}"\r\n'
            f"Content-Type: {file.media_type}\r\n\r\n"
        )
        pieces += (head.encode(), file.data, b"\r\n")
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"


def _parts(body: bytes, delimiter: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the head and the content of each part."""
    view = memoryview(body)
    position = 0 if body.startswith(delimiter) else body.find(b"\r\n" + delimiter) + 2
    if position == 1:
        raise MalformedForm("The form does not begin with the `boundary` of its content type.")
    number = 0
    while True:
        position += len(delimiter)
        if body.startswith(b"--", position):
            return
        number += 1
        line_end = body.find(b"\r\n", position, position + MAX_PART_HEADER_BYTES)
        head_end = body.find(b"\r\n\r\n", line_end, line_end + MAX_PART_HEADER_BYTES) if line_end >= 0 else -1
        if head_end < 0 or body[position:line_end].strip(b" \t"):
            raise MalformedForm(
                f"Part {number} of the form has no headers, or more than {MAX_PART_HEADER_BYTES} bytes of them."
            )
        end = _end_of_part(body, delimiter, head_end + 2)
        if end < 0:
            raise MalformedForm(f"Part {number} of the form does not end with the `boundary`: the body is incomplete.")
        yield body[line_end + 2 : head_end], view[head_end + 4 : end]
        position = end + 2


def _end_of_part(body: bytes, delimiter: bytes, start: int) -> int:
    """Return the position of the line break before the next delimiter, or -1."""
    end = start - 2
    while (end := body.find(b"\r\n" + delimiter, end + 2)) >= 0:
        after = end + 2 + len(delimiter)
        # The content may contain a line that only begins like the delimiter.
        if body[after : after + 2] in {b"--", b"\r\n"} or body[after : after + 1] in {b" ", b"\t"}:
            return max(end, start)
    return -1


def _add(values: dict[str, Any], files: list[FilePart], number: int, head: bytes, data: memoryview) -> None:
    headers = _headers(head, number)
    parameters = _parameters(headers.get("content-disposition", ""), number)
    raw_name = parameters.get("name", "")
    shown = "".join(letter for letter in raw_name[:_MAX_SHOWN_CHARACTERS] if letter.isprintable())
    name = _NAME.match(raw_name)
    if name is None:
        raise MalformedForm(
            f"Part {number} of the form has the name `{shown}`. A name is `field`, `field[]` or `field[key]`."
        )
    if headers.get("content-transfer-encoding", "").lower() not in _PLAIN_ENCODINGS:
        raise InvalidField(shown, f"`{shown}` must not have a transfer encoding.")
    if "filename" in parameters or "filename*" in parameters:
        files.append(_file(raw_name, parameters.get("filename", ""), headers.get("content-type", ""), data))
        return
    if len(data) > MAX_VALUE_BYTES:
        raise InvalidField(shown, f"`{shown}` must have {MAX_VALUE_BYTES} bytes at most.")
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        raise InvalidField(shown, f"`{shown}` must be a text in UTF-8.") from None
    if "\0" in text:
        raise InvalidField(shown, f"`{shown}` contains a NUL character.")
    _put(values, shown, [name[1], *_KEY.findall(name[2])], text)


def _put(values: dict[str, Any], shown: str, path: list[str], text: str) -> None:
    holder: Any = values
    for index, key in enumerate(path):
        is_last = index == len(path) - 1
        if is_last and key and key not in holder:
            holder[key] = text
            return
        if key and not is_last:
            holder = holder.setdefault(key, [] if path[index + 1] == "" else {})
            if isinstance(holder, list if path[index + 1] == "" else dict):
                continue
        elif is_last and not key:
            holder.append(text)
            return
        raise InvalidField(shown, f"`{shown}` occurs twice in the form, or with different kinds of values.")


def _headers(head: bytes, number: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        key = name.decode("latin-1").strip().lower()
        if not colon or key in headers:
            raise MalformedForm(f"Part {number} of the form has a header that is malformed or occurs twice.")
        try:
            headers[key] = value.decode().strip()
        except UnicodeDecodeError:
            raise MalformedForm(f"Part {number} of the form has a header that is not encoded as UTF-8.") from None
    return headers


def _parameters(disposition: str, number: int) -> dict[str, str]:
    kind, _, _ = disposition.partition(";")
    parameters: dict[str, str] = {}
    for key, quoted, plain in _PARAMETER.findall(disposition):
        if key.lower() in parameters:
            raise MalformedForm(f"Part {number} of the form has the parameter `{key[:_MAX_SHOWN_CHARACTERS]}` twice.")
        parameters[key.lower()] = quoted or plain
    if kind.strip().lower() != "form-data" or "name" not in parameters:
        raise MalformedForm(
            f"Part {number} of the form needs the header `Content-Disposition: form-data` with a `name`."
        )
    return parameters


def _file(name: str, filename: str, media_type: str, data: memoryview) -> FilePart:
    extension = _EXTENSION.search(filename)
    known = extension[1].lower() if extension is not None and extension[1].lower() in _EXTENSIONS else ""
    kind = media_type.partition(";")[0].strip().lower()
    plain = kind if _MEDIA_TYPE.match(kind) else "application/octet-stream"
    return FilePart(name=name, data=data, extension=known, media_type=plain)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of the parts of an object."""
    for key, value in values.items():
        name = f"{prefix}[{key}]" if prefix else key
        if isinstance(value, dict):
            yield from _flat(value, name)
        elif isinstance(value, list):
            yield from ((f"{name}[]", _text(item)) for item in value)
        elif value is not None:
            yield name, _text(value)


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
