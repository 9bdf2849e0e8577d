"""Whether a long text is JSON, read in steps of a bounded number of characters. A regex goes through what is no more
than some levels deep; what is deeper, or longer than a step, is read token by token."""

import re
from collections.abc import Callable
from typing import Final

from gatehouse.engine.dlp.steps import Steps

#: Characters that a regex is given at once, and what a token that is read by itself counts for.
WINDOW_CHARACTERS: Final = 32 * 1024
_A_TOKEN: Final = 64
#: Deeper texts are not taken for JSON: most readers refuse them.
MAX_DEPTH: Final = 900
#: Levels that one regex reads.
_LEVELS: Final = 2

_ANY_BLANKS: Final = r"[ \t\n\r]*+"
_CONTENT: Final = r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+'
_ANY_STRING: Final = f'"{_CONTENT}"'
_ANY_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
#: `json` reads the last three, too.
_WORDS: Final = "true|false|null|NaN|-?Infinity"


def _listed(opens: str, each: str, closes: str) -> str:
    """`each` any number of times, with commas between them."""
    return rf"{opens}(?:{each}(?:,(?!{_ANY_BLANKS}{closes})|(?={closes})))*+{_ANY_BLANKS}{closes}"


def _value(levels: int) -> str:
    """A value that is no deeper, and the blanks around it."""
    choices = [_ANY_STRING, _ANY_NUMBER, _WORDS]
    if levels:
        inner = _value(levels - 1)
        choices += [_listed(r"\[", inner, r"\]"), _listed(r"\{", _member(inner), r"\}")]
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
_LONGEST_WORD: Final = 16
_LONGEST_ESCAPE: Final = len("\\u0000")
#: Values of a list, or members of an object, each with the comma behind it.
_VALUES: Final = re.compile(f"(?:{_value(_LEVELS)},)*+")
_MEMBERS: Final = re.compile(f"(?:{_member(_value(_LEVELS))},)*+")


class NotJson(Exception):
    """The text is none."""


class JsonReader:
    """Goes through a text once."""

    __slots__ = ("_behind_digits", "_behind_string", "_is_within", "_next", "_objects", "_place", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        #: of the lists and objects that are open, whether each is an object
        self._objects: list[bool] = []
        #: reads what is next: no more than a few windows, and often one token
        self._next: Callable[[], None] = self._value
        #: in a string or number that is longer than a window
        self._is_within = False
        #: what is next behind a string, or digits, that are longer than a window
        self._behind_string = self._behind_digits = self._value

    def read(self) -> Steps[None]:
        """Raises `NotJson` unless all of the text is one value."""
        spent = 0
        while self._objects or self._next != self._behind_value:
            begin = self._place
            if not self._is_within and self._text[begin : begin + 1] in _BLANK and not self._skip_blanks():
                spent += WINDOW_CHARACTERS
            else:
                self._next()
                spent += self._place - begin + _A_TOKEN
            if spent >= WINDOW_CHARACTERS:
                spent = 0
                yield
        while not self._skip_blanks():
            yield
        if self._place < len(self._text):
            raise NotJson

    def _begun(self) -> None:
        """Behind the beginning of a list or object."""
        if self._text[self._place : self._place + 1] == ("}" if self._objects[-1] else "]"):
            self._close()
        else:
            self._entries()

    def _entries(self) -> None:
        """Values of a list, or members of an object, and the comma behind each."""
        run = _MEMBERS if self._objects[-1] else _VALUES
        end = self._end(run)
        if end == self._place:
            self._entry()
        else:
            self._place, self._next = end, self._entry

    def _entry(self) -> None:
        """A value of a list, or a member's name."""
        if not self._objects[-1]:
            self._value()
        elif self._text[self._place : self._place + 1] == '"':
            self._string(self._colon)
        else:
            raise NotJson

    def _colon(self) -> None:
        if self._text[self._place : self._place + 1] != ":":
            raise NotJson
        self._place += 1
        self._next = self._value

    def _value(self) -> None:
        """A value, or the beginning of a list or object."""
        character = self._text[self._place : self._place + 1]
        if character in {"[", "{"}:
            self._objects.append(character == "{")
            if len(self._objects) > MAX_DEPTH:
                raise NotJson
            self._place += 1
            self._next = self._begun
        elif character == '"':
            self._string(self._behind_value)
        elif (word := _WORD.match(self._text, self._place, self._place + _LONGEST_WORD)) is not None:
            self._place, self._next = word.end(), self._behind_value
        else:
            self._number()

    def _behind_value(self) -> None:
        """A comma, or the end of a list or object."""
        character = self._text[self._place : self._place + 1]
        if character == ",":
            self._place += 1
            self._next = self._entries
        elif character == ("}" if self._objects[-1] else "]"):
            self._close()
        else:
            raise NotJson

    def _close(self) -> None:
        self._objects.pop()
        self._place += 1
        self._next = self._behind_value

    def _string(self, behind: Callable[[], None]) -> None:
        found = _STRING.match(self._text, self._place, self._place + WINDOW_CHARACTERS)
        if found is not None:
            self._place, self._next = found.end(), behind
        else:
            self._place += 1
            self._is_within = True
            self._behind_string, self._next = behind, self._rest_of_string

    def _rest_of_string(self) -> None:
        begin, self._place = self._place, self._end(_IN_STRING)
        if self._place - begin >= WINDOW_CHARACTERS - _LONGEST_ESCAPE:
            # It may go on.
            return
        if self._text[self._place : self._place + 1] != '"':
            raise NotJson
        self._place += 1
        self._is_within = False
        self._next = self._behind_string

    def _number(self) -> None:
        stop = self._place + WINDOW_CHARACTERS
        found = _NUMBER.match(self._text, self._place, stop)
        if found is None:
            raise NotJson
        if found.end() < stop:
            self._place, self._next = found.end(), self._behind_value
            return
        self._is_within = True
        self._place += self._text[self._place] == "-"
        self._behind_digits = self._fraction
        if self._text[self._place] == "0":
            self._place += 1
            self._next = self._fraction
        else:
            self._next = self._rest_of_digits

    def _rest_of_digits(self) -> None:
        begin, self._place = self._place, self._end(_DIGITS)
        if self._place - begin < WINDOW_CHARACTERS:
            self._next = self._behind_digits

    def _fraction(self) -> None:
        self._digits_behind(_POINT, self._exponent)

    def _exponent(self) -> None:
        self._digits_behind(_EXPONENT, self._behind_number)

    def _behind_number(self) -> None:
        self._is_within = False
        self._next = self._behind_value

    def _digits_behind(self, sign: re.Pattern[str], behind: Callable[[], None]) -> None:
        """What `sign` matches with the first digit behind it, and more digits, or nothing."""
        found = sign.match(self._text, self._place, self._place + _LONGEST_WORD)
        if found is None:
            self._next = behind
        else:
            self._place = found.end()
            self._behind_digits, self._next = behind, self._rest_of_digits

    def _skip_blanks(self) -> bool:
        """Whether that was all of them."""
        begin, self._place = self._place, self._end(_BLANKS)
        return self._place - begin < WINDOW_CHARACTERS

    def _end(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._place, self._place + WINDOW_CHARACTERS)
        assert found is not None
        return found.end()
