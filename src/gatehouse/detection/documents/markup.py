"""Extracts the text of XML documents. The parser builds no tree, and refuses entities and document type
declarations."""

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.parsers import expat

from gatehouse.detection.documents.limits import MAX_DEPTH
from gatehouse.detection.separator import SEPARATOR

#: Parts of the names of XML namespaces of office documents.
_OFFICE: Final = ("wordprocessingml", "drawingml", "spreadsheetml", "presentationml")
#: Elements of office documents that end a line of text. The runs of a paragraph are not included, because a number may
#: span several runs.
_LINE_ELEMENTS: Final = frozenset({"p", "tr", "row", "comment", "pt", "v", "f", "txbxContent", "footnote", "endnote"})
#: Separates the shared strings of a spreadsheet. This character does not occur in XML.
STRING_END: Final = "\0"
_CELL_ELEMENTS: Final = frozenset({"tc", "c"})
_MARK_ELEMENTS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "s": " "}
#: Elements of all other documents that do not separate texts.
_INLINE_ELEMENTS: Final = frozenset(
    {"span", "a", "b", "i", "u", "s", "em", "strong", "font", "small", "sub", "sup", "code", "mark", "tab"}
)
#: Attributes that contain a text.
_TEXT_ATTRIBUTES: Final = frozenset({"descr", "title", "alt", "tooltip", "Target", "href"})
_CELL: Final = " | "
#: Maximum decimal exponent of a number that is written without exponent. Persons do not write longer numbers.
_MAX_EXPONENT: Final = 30


class BadMarkup(Exception):
    """The data is not XML, or contains declared entities or too many levels of elements, which no document needs."""


class Markup:
    """Passes the texts of one document to `write`. `shared` are the strings that the cells of a spreadsheet refer
    to."""

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
        """Parse the document. Raises `BadMarkup` and the exceptions of `write`."""
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
            if attribute.rpartition(" ")[2] in _TEXT_ATTRIBUTES:
                self._write(value + SEPARATOR)
        space, _, local = name.rpartition(" ")
        if _is_office(space):
            if local in _MARK_ELEMENTS:
                self._write(_MARK_ELEMENTS[local])
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
            self._write("" if local in _INLINE_ELEMENTS else SEPARATOR)
        elif local == "si":
            self._write(STRING_END)
        elif local in _CELL_ELEMENTS:
            self._write(_CELL)
        elif local in _LINE_ELEMENTS:
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
    """Return a number without exponent, as people write it. In a spreadsheet, it may be stored as `4.111E+15`."""
    if "E" not in value:
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    return format(number, "f") if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT else value
