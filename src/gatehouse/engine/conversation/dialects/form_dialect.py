"""Base of dialects whose calls are forms with files."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from gatehouse.detection.documents.encodings import begins_like_text
from gatehouse.detection.documents.kinds import kind_of
from gatehouse.engine.conversation.call import FilePart, ModelCall
from gatehouse.engine.conversation.decoding.bodies import call_of
from gatehouse.engine.conversation.decoding.multipart import read_form
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.passing_only import PassingOnly
from gatehouse.engine.conversation.errors import InvalidField

#: Number of bytes at the beginning of a file that are read to determine its kind.
_DETECTED_BYTES: Final = 2048
_KIND_NAMES: Final = {
    "image": "an image (PNG, JPEG, WebP or GIF)",
    "audio": "a recording (MP3, MP4, M4A, WAV, WebM, OGG or FLAC)",
}
#: First bytes of MPEG files, which may be recordings or videos.
_MPEG_FIRST_BYTES: Final = (b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3")


class FormDialect(PassingOnly):
    """A dialect with forms. `file_kind` is the kind of all files, `required_file` the name of the file that a call must
    have, and `file_names` the names of all files. A file is checked by its first bytes, so that no text passes as an
    image or a recording without inspection."""

    file_kind: ClassVar[Literal["image", "audio"]]
    required_file: ClassVar[str]
    file_names: ClassVar[frozenset[str]]
    #: fields with integers
    integers: ClassVar[frozenset[str]] = frozenset()

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        form = read_form(headers.get("content-type"), body)
        values = self._typed(form.values)
        answer_form = self.answer_form(values)
        call = call_of(self.name, values, self.shape, files=form.files, is_form=True, answer_form=answer_form)
        self._check_files(form.files)
        if call.stream:
            raise InvalidField("stream", "`stream`: the answers of this path are not streamed.")
        return call

    def answer_form(self, values: Mapping[str, Any]) -> Literal["json", "text"]:
        """Return the format of the answer to a form with these fields."""
        return "json"

    def _typed(self, values: dict[str, Any]) -> dict[str, Any]:
        for name in self.integers & values.keys():
            text = values[name]
            if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10:
                values[name] = int(text)
        if values.get("stream") in ("true", "false"):
            values["stream"] = values["stream"] == "true"
        return values

    def _check_files(self, files: tuple[FilePart, ...]) -> None:
        for file in files:
            name = file.name.removesuffix("[]")
            if name not in self.file_names:
                raise InvalidField(name, f"`{name}` must not be a file.")
            if not _has_kind(file, self.file_kind):
                raise InvalidField(name, f"`{name}` must be {_KIND_NAMES[self.file_kind]}.")
        if self.required_file not in {file.name.removesuffix("[]") for file in files}:
            raise InvalidField(self.required_file, f"`{self.required_file}` must be a file.")


def _has_kind(file: FilePart, kind: str) -> bool:
    begin = bytes(file.data[:_DETECTED_BYTES])
    if begins_like_text(begin):
        return False
    detected_kind = kind_of(begin)
    return detected_kind == kind or (kind == "audio" and (begin[4:8] == b"ftyp" or begin.startswith(_MPEG_FIRST_BYTES)))
