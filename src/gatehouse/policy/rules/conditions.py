"""Conditions of policy rules. They are CEL expressions, with limits so that no condition can keep a worker busy.

Only the functions and variables listed here are available. Constructs whose cost is not bounded by the length of the
condition are refused: nested comprehensions, and `matches`, which compiles its pattern at each evaluation. A
comprehension may only iterate over the caller's groups, the detected entity types and the fields of the request.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network
from itertools import accumulate, pairwise
from typing import Any, Final

from gatehouse.policy.rules.cel_library import cel

#: Maximum characters, tokens and nesting levels of brackets in a condition.
MAX_CONDITION_CHARACTERS: Final = 2_000
MAX_TOKENS: Final = 500
MAX_BRACKET_DEPTH: Final = 20
#: Maximum number of comprehensions in a condition.
_MAX_COMPREHENSIONS: Final = 4

#: The variables with example values. A new condition is evaluated with these values.
EXAMPLES: Final[dict[str, Any]] = {
    "model": "openai/gpt-4o",
    "provider": "openai",
    "model_risk_tier": "tier_2",
    "validation_status": "validated",
    "user": {
        "id": "0192f3c4-5d6e-7f80-9123-456789abcdef",
        "email": "ada@example.com",
        "role": "user",
        "kind": "api_key",
    },
    "groups": ["0192f3c4-5d6e-7f80-9123-0000000000aa"],
    "dlp": {"action": "REDACT", "entities": ["ssn"], "counts": {"ssn": 1}},
    "tokens": 1_000,
    "cost_usd": 0.01,
    "ip": "192.0.2.1",
    "request": {"fields": ["messages", "model", "temperature", "tools"]},
    "time": datetime(2026, 7, 15, 12, 30, tzinfo=UTC),
    "mcp": {"server": "mail", "tool": "send", "arguments": {"to": "bob@example.com", "subject": "Hello"}},
}
#: The variable of calls of tools. A condition that uses it is evaluated for these calls only, and every other condition
#: for model calls only.
TOOL_CALL: Final = "mcp"
#: Variables that only model calls have.
_OF_MODEL_CALLS: Final = frozenset(
    {"model", "provider", "model_risk_tier", "validation_status", "cost_usd", "tokens", "request"}
)

_FUNCTIONS: Final = frozenset({"size", "has", "int", "uint", "double", "string", "duration", "timestamp"})
_METHODS: Final = frozenset({
    "size", "contains", "startsWith", "endsWith", "in_range", "getFullYear", "getMonth", "getDate", "getDayOfMonth",
    "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds",
})  # fmt: skip
_COMPREHENSIONS: Final = frozenset({"all", "exists", "exists_one", "filter"})
_LISTS: Final = frozenset({"groups", "dlp.entities", "request.fields"})

_TOKEN: Final = re.compile(
    r"\s+|//[^\n]*"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9][0-9A-Za-z.]*)"
    r"|(?P<other>[^\s\"'`A-Za-z0-9_])"
)
_KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


class BadCondition(ValueError):
    """The condition is not accepted. The message is for the author of the condition."""


class ConditionFailed(Exception):
    """The evaluation of a condition failed, or returned neither true nor false."""


@lru_cache(maxsize=10_000)
def compile_condition(condition: str) -> cel.Program:
    """Return the compiled program of a condition. Results are cached. Raises `BadCondition`."""
    if len(condition) > MAX_CONDITION_CHARACTERS:
        raise BadCondition(f"is longer than {MAX_CONDITION_CHARACTERS} characters")
    own_variables = _validate(condition)
    try:
        program = cel.compile(condition)
        variables = program.variables()
    except ValueError as error:
        raise BadCondition(_message(error)) from None
    only_of_models = sorted(_OF_MODEL_CALLS.intersection(variables))
    if TOOL_CALL in variables and only_of_models:
        raise BadCondition(f"uses {TOOL_CALL!r} and {only_of_models[0]!r}, which no request has both")
    unknown = sorted(set(variables) - EXAMPLES.keys() - own_variables)
    if unknown:
        raise BadCondition(f"uses {unknown[0]!r}, which is not a variable; available are {', '.join(sorted(EXAMPLES))}")
    return program


def check(condition: str) -> None:
    """Compile a new condition and evaluate it with the example values. Raises `BadCondition`."""
    program = compile_condition(condition)
    context = cel.Context(variables=EXAMPLES, functions=FUNCTIONS)
    try:
        result = program.execute(context)
    except (KeyError, IndexError):
        # The condition uses a key or index that the examples do not have, but a request may have it.
        return
    except Exception as error:
        raise BadCondition(f"fails on an example request: {_message(error)}") from None
    if type(result) is not bool:
        raise BadCondition(f"must return true or false; on an example request it returns {type(result).__name__}")


def evaluate(program: cel.Program, context: cel.Context) -> bool:
    """Return the value of a condition. Raises `ConditionFailed`."""
    try:
        result = program.execute(context)
    except (KeyboardInterrupt, SystemExit):
        raise
    # A panic of the evaluator is not an `Exception`. The request must be recorded even after a panic.
    except BaseException as error:
        raise ConditionFailed(_message(error)) from None
    if type(result) is not bool:
        raise ConditionFailed(f"returns {type(result).__name__}, not true or false")
    return result


def in_range(address: Any, network: Any) -> bool | None:
    """Return whether an address is in a network. Return None, which makes the condition fail, if one of them is
    invalid."""
    try:
        return ip_address(address) in _network(network)
    except (ValueError, TypeError):
        return None


#: Functions that conditions can use in addition to those of CEL.
FUNCTIONS: Final = {"in_range": in_range}

_network = lru_cache(maxsize=1_000)(ip_network)


def reads_arguments(condition: str) -> bool:
    """Return whether a valid condition may read the arguments of a tool call."""
    return "arguments" in condition


def _validate(condition: str) -> set[str]:
    """Check the tokens of a condition, and return the variables of its comprehensions. Raises `BadCondition`."""
    tokens = list(_tokens(condition))
    if len(tokens) > MAX_TOKENS:
        raise BadCondition(f"has more than {MAX_TOKENS} words and signs")
    depths = list(accumulate((token in _OPENING) - (token in _CLOSING) for token in tokens))
    if max(depths, default=0) > MAX_BRACKET_DEPTH:
        raise BadCondition(f"has brackets more than {MAX_BRACKET_DEPTH} deep")
    if not _names_fields(tokens):
        raise BadCondition(f"uses {TOOL_CALL!r} without one of its fields {', '.join(EXAMPLES[TOOL_CALL])}")
    comprehensions: list[int] = []
    for n in _calls(tokens):
        method = n > 0 and tokens[n - 1] == "."
        if method and tokens[n] in _COMPREHENSIONS:
            comprehensions.append(n)
        elif tokens[n] not in (_METHODS if method else _FUNCTIONS):
            raise BadCondition(f"calls {tokens[n]!r}, which is not available")
    return _bound_variables(tokens, depths, comprehensions)


def _names_fields(tokens: Sequence[str]) -> bool:
    """Return whether a condition names a field wherever it uses the variable of tool calls. The text of such a
    condition shows whether it reads the arguments."""
    return all(
        tokens[n + 1 : n + 2] == ["."] and tokens[n + 2 : n + 3] and tokens[n + 2] in EXAMPLES[TOOL_CALL]
        for n, word in enumerate(tokens)
        if word == TOOL_CALL and (n == 0 or tokens[n - 1] != ".")
    )


def _calls(tokens: Sequence[str]) -> Iterator[int]:
    """Yield the index of the name of each called function or method."""
    for n, (token, following) in enumerate(pairwise(tokens)):
        if following == "(" and token.isidentifier() and token not in _KEYWORDS:
            yield n


def _bound_variables(tokens: Sequence[str], depths: Sequence[int], comprehensions: Sequence[int]) -> set[str]:
    if len(comprehensions) > _MAX_COMPREHENSIONS:
        raise BadCondition(f"has more than {_MAX_COMPREHENSIONS} comprehensions")
    end = 0
    for n in comprehensions:
        if n < end:
            raise BadCondition(f"has {tokens[n]} inside another comprehension")
        if _path_before(tokens, n - 1) not in _LISTS:
            raise BadCondition(f"uses {tokens[n]} on something other than {' or '.join(sorted(_LISTS))}")
        end = next((index for index in range(n + 2, len(tokens)) if depths[index] <= depths[n]), len(tokens))
    own_variables = {token for n in comprehensions for token in tokens[n + 2 : n + 3]}
    if own_variables & EXAMPLES.keys():
        raise BadCondition("uses the name of an available variable as the variable of a comprehension")
    return own_variables


def _tokens(condition: str) -> Iterator[str]:
    position = 0
    previous_kind = ""
    while position < len(condition):
        match = _TOKEN.match(condition, position)
        if match is None:
            raise BadCondition(f"cannot be read at character {position + 1}: {condition[position]!r}")
        kind, token = match.lastgroup, match[0]
        # `r"..."`, `b"..."` and `\"\"\"...\"\"\"` have another end than this tokenizer assumes, so they could hide a
        # call.
        if kind == "text" and previous_kind in {"name", "text"}:
            raise BadCondition(f"has a text at character {position + 1} that is not written as \"...\" or '...'")
        if kind is not None:
            yield token
        previous_kind, position = kind or "", match.end()


def _path_before(tokens: Sequence[str], dot: int) -> str:
    """Return the dotted names before the dot at index `dot`. Return an empty string if they are part of a longer
    expression."""
    path: list[str] = []
    while dot > 0 and tokens[dot] == "." and tokens[dot - 1].isidentifier():
        path.insert(0, tokens[dot - 1])
        dot -= 2
    return "" if dot >= 0 and tokens[dot] == "." else ".".join(path)


def _message(error: BaseException) -> str:
    """Return the error message of the evaluator in one line, without the text of the condition."""
    text = str(error)
    _, separator, position = text.partition("ERROR: <input>:")
    line = (f"at {position}" if separator else text).splitlines()
    return line[0][:300] if line else type(error).__name__
