"""Converts custom tools, whose input is any text, to functions with one string parameter, and their calls back."""

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
#: a beginning that may become `_OPENING` with more characters
_MAX_OPENING_CHARACTERS: Final = 64
#: a surrogate pair
_MAX_ESCAPE_CHARACTERS: Final = 12
#: complete characters and escapes of a JSON string; a high surrogate only together with the escape that follows it
_COMPLETE: Final = re.compile(
    r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*'
)


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
    """Return the input of a call. Arguments without the parameter are the input themselves: some models write it
    without JSON."""
    text = _decoded_input(arguments)
    return arguments if text is None else text


class InputReader:
    """Reads the input from arguments that arrive in pieces."""

    __slots__ = ("_arguments", "_is_in_text", "_is_read", "_pending", "text")

    def __init__(self) -> None:
        #: the input so far
        self.text = ""
        self._arguments: list[str] = []
        #: characters that are not decoded yet
        self._pending = ""
        self._is_in_text = False
        #: whether the rest is read only at the end
        self._is_read = False

    def push(self, piece: str) -> str:
        """Return the part of the input that a further piece of the arguments completes."""
        self._arguments.append(piece)
        if self._is_read:
            return ""
        self._pending += piece
        if not self._is_in_text and not self._open():
            return ""
        complete = _COMPLETE.match(self._pending)
        assert complete is not None
        # At the closing quotation mark, or at a character that no string has.
        rest = self._pending[complete.end() :]
        self._is_read = bool(rest) and (not rest.startswith("\\") or len(rest) > _MAX_ESCAPE_CHARACTERS)
        self._pending = rest
        return self._grow(complete[0])

    def finish(self) -> str:
        """Return the remaining part of the input after the last piece."""
        if self._is_in_text:
            return ""
        self.text = input_of("".join(self._arguments))
        return self.text

    def _open(self) -> bool:
        opening = _OPENING.match(self._pending)
        if opening is None:
            self._is_read = len(self._pending) > _MAX_OPENING_CHARACTERS
            return False
        self._pending = self._pending[opening.end() :]
        self._is_in_text = True
        return True

    def _grow(self, escaped: str) -> str:
        try:
            text: str = msgspec.json.decode(f'"{escaped}"')
        except (msgspec.DecodeError, UnicodeError):
            # Half a surrogate pair.
            return ""
        self.text += text
        return text


def _decoded_input(arguments: str) -> str | None:
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    text = value.get(INPUT, None if value else "") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None
