"""Checks whether a long text is JSON, in steps of a bounded number of characters.

A regex reads values of at most `_REGEX_LEVELS` levels. Deeper values, and tokens longer than a step, are read token by
token."""

import re
from collections.abc import Callable
from typing import Final

from gatehouse.engine.dlp.steps import Steps

#: Maximum number of characters that one regex match reads. The second constant is the cost, in characters, of reading
#: one token alone.
WINDOW_CHARACTERS: Final = 32 * 1024
_TOKEN_COST_CHARACTERS: Final = 64
#: Texts with more levels are not treated as JSON, because most JSON readers refuse them.
MAX_DEPTH: Final = 900
#: Maximum number of levels of a value that one regex reads.
_REGEX_LEVELS: Final = 2

_ANY_BLANKS: Final = r"[ \t\n\r]*+"
_CONTENT: Final = r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+'
_ANY_STRING: Final = f'"{_CONTENT}"'
_ANY_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
#: The module `json` of Python also accepts the last three words.
_WORDS: Final = "true|false|null|NaN|-?Infinity"


def _sequence_of(opens: str, item: str, closes: str) -> str:
    """Return the regex of any number of `item`, separated by commas, between brackets."""
    return rf"{opens}(?:{item}(?:,(?!{_ANY_BLANKS}{closes})|(?={closes})))*+{_ANY_BLANKS}{closes}"


def _value(levels: int) -> str:
    """Return the regex of a value of at most `levels` levels, with the white space around it."""
    choices = [_ANY_STRING, _ANY_NUMBER, _WORDS]
    if levels:
        inner = _value(levels - 1)
        choices += [_sequence_of(r"\[", inner, r"\]"), _sequence_of(r"\{", _member(inner), r"\}")]
    return f"{_ANY_BLANKS}(?:{'|'.join(choices)}){_ANY_BLANKS}"


def _member(value: str) -> str:
    return f"{_ANY_BLANKS}{_ANY_STRING}{_ANY_BLANKS}:{value}"


_BLANKS: Final = re.compile(_ANY_BLANKS)
_IN_STRING: Final = re.compile(_CONTENT)
_STRING: Final = re.compile(_ANY_STRING)
_NUMBER: Final = re.compile(_ANY_NUMBER)
_WORD: Final = re.compile(_WORDS)
_DIGITS: Final = re.compile("[0-9]*+")
_POINT: Final = re.compile(r"\.[0-9]")
_EXPONENT: Final = re.compile("[eE][+-]?[0-9]")
_BLANK: Final = frozenset(" \t\n\r")
_MAX_WORD_CHARACTERS: Final = 16
_ESCAPE_CHARACTERS: Final = len("\\u0000")
_SIGNED_DIGIT_CHARACTERS: Final = len("e+0")
#: Values of a list, and members of an object, each followed by a comma.
_VALUES: Final = re.compile(f"(?:{_value(_REGEX_LEVELS)},)*+")
_MEMBERS: Final = re.compile(f"(?:{_member(_value(_REGEX_LEVELS))},)*+")


class NotJson(Exception):
    """The text is not valid JSON."""


class JsonReader:
    """Reads a text once from start to end, to check whether it is JSON."""

    __slots__ = ("_after_digits", "_after_string", "_is_in_long_token", "_next", "_objects", "_position", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        #: whether each open container is an object (True) or a list (False), outermost first
        self._objects: list[bool] = []
        #: reads the next element: often one token, at most a few windows
        self._next: Callable[[], None] = self._value
        #: whether the position is in a string or number that is longer than a window
        self._is_in_long_token = False
        #: the reader that continues after a string, or after digits, longer than a window
        self._after_string = self._after_digits = self._value

    def read(self) -> Steps[None]:
        """Read the text in steps. Raises `NotJson` unless the text is exactly one JSON value."""
        characters = 0
        while self._objects or self._next != self._after_value:
            begin = self._position
            if not self._is_in_long_token and self._text[begin : begin + 1] in _BLANK and not self._skip_blanks():
                characters += WINDOW_CHARACTERS
            else:
                self._next()
                characters += self._position - begin + _TOKEN_COST_CHARACTERS
            if characters >= WINDOW_CHARACTERS:
                characters = 0
                yield
        while not self._skip_blanks():
            yield
        if self._position < len(self._text):
            raise NotJson

    def _first_entry(self) -> None:
        """Read the first entry of a list or object, or its closing bracket."""
        if self._text[self._position : self._position + 1] == ("}" if self._objects[-1] else "]"):
            self._close()
        else:
            self._entries()

    def _entries(self) -> None:
        """Read values of a list or members of an object, each with the comma after it."""
        run = _MEMBERS if self._objects[-1] else _VALUES
        end = self._end(run)
        if end == self._position:
            self._entry()
        else:
            self._position, self._next = end, self._entry

    def _entry(self) -> None:
        """Read one value of a list, or the name of one member of an object."""
        if not self._objects[-1]:
            self._value()
        elif self._text[self._position : self._position + 1] == '"':
            self._string(self._colon)
        else:
            raise NotJson

    def _colon(self) -> None:
        if self._text[self._position : self._position + 1] != ":":
            raise NotJson
        self._position += 1
        self._next = self._value

    def _value(self) -> None:
        """Read a value, or the opening bracket of a list or object."""
        character = self._text[self._position : self._position + 1]
        if character in {"[", "{"}:
            self._objects.append(character == "{")
            if len(self._objects) > MAX_DEPTH:
                raise NotJson
            self._position += 1
            self._next = self._first_entry
        elif character == '"':
            self._string(self._after_value)
        elif (word := _WORD.match(self._text, self._position, self._position + _MAX_WORD_CHARACTERS)) is not None:
            self._position, self._next = word.end(), self._after_value
        else:
            self._number()

    def _after_value(self) -> None:
        """Read a comma, or the closing bracket of a list or object."""
        character = self._text[self._position : self._position + 1]
        if character == ",":
            self._position += 1
            self._next = self._entries
        elif character == ("}" if self._objects[-1] else "]"):
            self._close()
        else:
            raise NotJson

    def _close(self) -> None:
        self._objects.pop()
        self._position += 1
        self._next = self._after_value

    def _string(self, next_reader: Callable[[], None]) -> None:
        match = _STRING.match(self._text, self._position, self._position + WINDOW_CHARACTERS)
        if match is not None:
            self._position, self._next = match.end(), next_reader
        else:
            self._position += 1
            self._is_in_long_token = True
            self._after_string, self._next = next_reader, self._rest_of_string

    def _rest_of_string(self) -> None:
        begin, self._position = self._position, self._end(_IN_STRING)
        if self._position - begin >= WINDOW_CHARACTERS - _ESCAPE_CHARACTERS:
            # The string may continue in the next window.
            return
        if self._text[self._position : self._position + 1] != '"':
            raise NotJson
        self._position += 1
        self._is_in_long_token = False
        self._next = self._after_string

    def _number(self) -> None:
        stop = self._position + WINDOW_CHARACTERS
        match = _NUMBER.match(self._text, self._position, stop)
        if match is None:
            raise NotJson
        # A fraction or an exponent may follow. Its first digit is at most the third character after the number, and
        # must be in the window.
        if match.end() + _SIGNED_DIGIT_CHARACTERS <= stop:
            self._position, self._next = match.end(), self._after_value
            return
        self._is_in_long_token = True
        self._position += self._text[self._position] == "-"
        self._after_digits = self._fraction
        if self._text[self._position] == "0":
            self._position += 1
            self._next = self._fraction
        else:
            self._next = self._rest_of_digits

    def _rest_of_digits(self) -> None:
        begin, self._position = self._position, self._end(_DIGITS)
        if self._position - begin < WINDOW_CHARACTERS:
            self._next = self._after_digits

    def _fraction(self) -> None:
        self._digits_after(_POINT, self._exponent)

    def _exponent(self) -> None:
        self._digits_after(_EXPONENT, self._after_number)

    def _after_number(self) -> None:
        self._is_in_long_token = False
        self._next = self._after_value

    def _digits_after(self, sign: re.Pattern[str], next_reader: Callable[[], None]) -> None:
        """Read `sign`, which includes the first digit, and the digits after it. Reads nothing if `sign` does
        not match."""
        match = sign.match(self._text, self._position, self._position + _MAX_WORD_CHARACTERS)
        if match is None:
            self._next = next_reader
        else:
            self._position = match.end()
            self._after_digits, self._next = next_reader, self._rest_of_digits

    def _skip_blanks(self) -> bool:
        """Skip white space, at most one window. Returns whether the white space ends within the window."""
        begin, self._position = self._position, self._end(_BLANKS)
        return self._position - begin < WINDOW_CHARACTERS

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._position, self._position + WINDOW_CHARACTERS)
        assert match is not None
        return match.end()
