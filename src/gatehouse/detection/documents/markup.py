"""Extracts the text of XML while it is parsed: without a tree, entities or document type declarations."""

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.parsers import expat

from gatehouse.detection.documents.limits import MAX_DEPTH
from gatehouse.detection.separator import SEPARATOR

#: Elements of office documents whose texts are separate. The runs of a paragraph are one text, because a number may
#: span several runs.
_OFFICE: Final = ("wordprocessingml", "drawingml", "spreadsheetml", "presentationml")
_LINES: Final = frozenset({"p", "tr", "row", "comment", "pt", "v", "f", "txbxContent", "footnote", "endnote"})
#: Separates the shared strings of a spreadsheet. XML cannot have this character.
STRING_END: Final = "\0"
_CELLS: Final = frozenset({"tc", "c"})
_MARKS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "s": " "}
#: Inline elements of all other documents.
_WITHIN: Final = frozenset(
    {"span", "a", "b", "i", "u", "s", "em", "strong", "font", "small", "sub", "sup", "code", "mark", "tab"}
)
#: Attributes with a text.
_TEXTS: Final = frozenset({"descr", "title", "alt", "tooltip", "Target", "href"})
_CELL: Final = " | "
#: A number with more digits was not written by a person.
_MAX_EXPONENT: Final = 30


class BadMarkup(Exception):
    """The data is not XML, or has what no document needs: declared entities, a thousand levels of elements."""


class Markup:
    """Passes the texts of one document to `write`. `shared` are the strings that a spreadsheet's cells refer to."""

    def __init__(self, write: Callable[[str], None], shared: list[str] | None = None) -> None:
        self._write = write
        self._shared = shared
        self._depth = 0
        #: the type of the current cell
        self._cell_type = ""
        #: the value of the current cell
        self._value: list[str] | None = None
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._refuse
        parser.StartDoctypeDeclHandler = self._doctype

    def read(self, pieces: Iterable[bytes]) -> None:
        """Parse the document. Raises `BadMarkup`, and the exceptions of `write`."""
        try:
            for piece in pieces:
                self._parser.Parse(piece)
            self._parser.Parse(b"", True)
        except expat.ExpatError:
            raise BadMarkup from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadMarkup
        for attribute, value in attributes.items():
            if attribute.rpartition(" ")[2] in _TEXTS:
                self._write(value + SEPARATOR)
        space, _, local = name.rpartition(" ")
        if _is_office(space):
            if local in _MARKS:
                self._write(_MARKS[local])
            elif self._shared is not None and local == "c":
                self._cell_type = attributes.get("t", "n")
            elif self._shared is not None and local == "v":
                self._value = []

    def _end(self, name: str) -> None:
        self._depth -= 1
        space, _, local = name.rpartition(" ")
        if self._value is not None and local == "v":
            self._write(self._of_cell("".join(self._value)))
            self._value = None
        elif not _is_office(space):
            self._write("" if local in _WITHIN else SEPARATOR)
        elif local == "si":
            self._write(STRING_END)
        elif local in _CELLS:
            self._write(_CELL)
        elif local in _LINES:
            self._write("\n")

    def _text(self, text: str) -> None:
        if self._value is None:
            self._write(text)
        else:
            self._value.append(text)

    def _of_cell(self, value: str) -> str:
        if self._cell_type == "s":
            assert self._shared is not None
            number = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else -1
            return self._shared[number] if 0 <= number < len(self._shared) else ""
        return _plain_number(value) if self._cell_type == "n" else value

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            raise BadMarkup

    def _refuse(self, *_: object) -> None:
        raise BadMarkup


def _is_office(space: str) -> bool:
    return any(word in space for word in _OFFICE)


def _plain_number(value: str) -> str:
    """Return a number as people write it: a spreadsheet may have `4.111E+15`."""
    if "E" not in value:
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    return format(number, "f") if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT else value
