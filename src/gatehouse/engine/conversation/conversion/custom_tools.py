"""Converts custom tools to functions, and calls of these functions back to calls of the custom tools.

The input of a custom tool is any text. The function has this text as its only parameter.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.form import Tool

#: the only parameter of the function that stands for a custom tool
INPUT: Final = "input"
_SYNTAXES: Final = {"lark": "Lark grammar", "regex": "regular expression"}
#: the beginning of the arguments, up to the first character of the input
_OPENING: Final = re.compile(r'\s*\{\s*"input"\s*:\s*"')
#: maximum length of an `_OPENING`; longer arguments without one do not have the expected form
_MAX_OPENING_CHARACTERS: Final = 64
#: Complete characters and escapes of a JSON string. A high surrogate is complete together with its low surrogate, or if
#: something else follows. Some models do not escape control characters and backslashes as JSON requires, so an unknown
#: escape is read as plain text.
_COMPLETE: Final = re.compile(
    r"""(?: [^"\\]++
        | \\[^u]
        | \\u(?![dD][89abAB])[0-9a-fA-F]{4}
        | \\u[dD][89abAB][0-9a-fA-F]{2}
          (?: \\u[dD][c-fC-F][0-9a-fA-F]{2}
          | (?= [^\\] | \\[^u] | \\u(?![dD][c-fC-F])[0-9a-fA-F]{4} | \\u[0-9a-fA-F]{0,3}[^0-9a-fA-F] )
          )
        | \\u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])
        )*+""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\([^u])")
_ESCAPED: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def function_of(name: str, description: str | None, input_format: Mapping[str, Any] | None) -> Tool:
    """Return the function that stands for a custom tool. A grammar becomes part of the parameter's description, because
    no other API can enforce it."""
    parameter: dict[str, Any] = {"type": "string", "description": "The whole input of the tool, as plain text."}
    syntax = (input_format or {}).get("syntax")
    definition = (input_format or {}).get("definition")
    if isinstance(definition, str):
        kind = _SYNTAXES.get(syntax, "grammar") if isinstance(syntax, str) else "grammar"
        parameter["description"] += f" It must match this {kind}:\n{definition}"
    schema = {"type": "object", "properties": {INPUT: parameter}, "required": [INPUT], "additionalProperties": False}
    return Tool(name=name, description=description, parameters=schema)


def arguments_of(text: str) -> str:
    """Return the function's arguments for the input of an earlier call."""
    return msgspec.json.encode({INPUT: text}).decode()


def input_of(arguments: str) -> str:
    """Return the input of a call, as `InputReader` reads it. Arguments without the parameter are themselves the input,
    because some models write the input without JSON."""
    reader = InputReader()
    reader.push(arguments)
    reader.finish()
    return reader.text


class InputReader:
    """Reads the input from arguments that arrive in pieces. If the output limit cuts the arguments off within the
    input, the result is the beginning of the input."""

    __slots__ = ("_arguments", "_input", "_is_in_text", "_is_read", "_pending")

    def __init__(self) -> None:
        #: pieces of the input
        self._input: list[str] = []
        #: pieces of the arguments while the beginning of the input is not known
        self._arguments: list[str] = []
        #: characters that are not decoded yet
        self._pending = ""
        self._is_in_text = False
        #: whether further pieces are ignored until `finish`
        self._is_read = False

    @property
    def text(self) -> str:
        """The input so far. Joins all pieces, so read it only at the end."""
        return "".join(self._input)

    def push(self, piece: str) -> str:
        """Return the part of the input that a further piece of the arguments completes."""
        if not self._is_in_text:
            self._arguments.append(piece)
        if self._is_read:
            return ""
        self._pending += piece
        if not self._is_in_text and not self._open():
            return ""
        complete = _COMPLETE.match(self._pending)
        assert complete is not None
        self._pending = self._pending[complete.end() :]
        self._is_read = self._pending.startswith('"')
        return self._grow(_decoded(complete[0]))

    def finish(self) -> str:
        """Return the remaining part of the input after the last piece."""
        if self._is_in_text:
            return ""
        arguments = "".join(self._arguments)
        text = _decoded_input(arguments)
        return self._grow(arguments if text is None else text)

    def _open(self) -> bool:
        opening = _OPENING.match(self._pending)
        if opening is None or opening.end() > _MAX_OPENING_CHARACTERS:
            self._is_read = len(self._pending) > _MAX_OPENING_CHARACTERS
            return False
        self._pending = self._pending[opening.end() :]
        self._arguments.clear()
        self._is_in_text = True
        return True

    def _grow(self, text: str) -> str:
        if text:
            self._input.append(text)
        return text


def _decoded(escaped: str) -> str:
    """Return the text of complete characters and escapes. Replaces each half of a surrogate pair by U+FFFD."""
    if "\\" not in escaped:
        return escaped
    return _ESCAPE.sub(_character, escaped).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _ESCAPED.get(escape[2], escape[0])


def _decoded_input(arguments: str) -> str | None:
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    text = value.get(INPUT, None if value else "") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None
