"""Conditions of policy rules: CEL, bounded so that none of them can keep a worker busy.

Only what is listed here may be named. Left out is what costs more than its length: comprehensions over anything but
the caller's groups and the found entity types, one inside another, and `matches`, which compiles its pattern anew each
time it is asked.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network
from itertools import accumulate, pairwise
from typing import Any, Final

from gatehouse.policy.cel_library import cel

#: Characters of a condition, tokens in it, and brackets inside each other.
LONGEST: Final = 2_000
MOST_TOKENS: Final = 500
DEEPEST: Final = 20
#: Comprehensions in one condition.
_MOST_COMPREHENSIONS: Final = 4

#: Each variable with an example of it: a condition is tried on these when it is written.
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
}
#: What differs between the models that could answer; all else is the request's.
OF_A_CANDIDATE: Final = frozenset({"model", "provider", "model_risk_tier", "validation_status", "cost_usd"})

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
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_OPENS: Final = frozenset("([{")
_CLOSES: Final = frozenset(")]}")


class BadCondition(ValueError):
    """Why a condition cannot be taken, in words for the one who wrote it."""


class Failed(Exception):
    """A condition came to no true or false."""


@lru_cache(maxsize=10_000)
def compiled(condition: str) -> cel.Program:
    """Raises `BadCondition`. The same condition is compiled once a process."""
    if len(condition) > LONGEST:
        raise BadCondition(f"is longer than {LONGEST} characters")
    bound = _looked_over(condition)
    try:
        program = cel.compile(condition)
        named = program.variables()
    except ValueError as error:
        raise BadCondition(_spoken(error)) from None
    unknown = sorted(set(named) - EXAMPLES.keys() - bound)
    if unknown:
        raise BadCondition(f"names {unknown[0]!r}, which is no variable: there are {', '.join(sorted(EXAMPLES))}")
    return program


def check(condition: str) -> None:
    """For a condition that is being written: compiles it, and tries it on the examples. Raises `BadCondition`."""
    program = compiled(condition)
    context = cel.Context(variables=EXAMPLES, functions=FUNCTIONS)
    try:
        result = program.execute(context)
    except (KeyError, IndexError):
        # What is not in the example may be in a request.
        return
    except Exception as error:
        raise BadCondition(f"fails on an example request: {_spoken(error)}") from None
    if type(result) is not bool:
        raise BadCondition(f"must say true or false; on an example request it gives {type(result).__name__}")


def holds(program: cel.Program, context: cel.Context) -> bool:
    """Raises `Failed`."""
    try:
        result = program.execute(context)
    except (KeyboardInterrupt, SystemExit):
        raise
    # A panic of the evaluator is no `Exception`, and must not cost a request its record.
    except BaseException as error:
        raise Failed(_spoken(error)) from None
    if type(result) is not bool:
        raise Failed(f"gives {type(result).__name__}, not true or false")
    return result


def in_range(address: Any, network: Any) -> bool | None:
    """Whether an address is in a network; None, which makes the condition fail, where one of them is none."""
    try:
        return ip_address(address) in _network(network)
    except (ValueError, TypeError):
        return None


#: What conditions may call besides CEL's own.
FUNCTIONS: Final = {"in_range": in_range}

_network = lru_cache(maxsize=1_000)(ip_network)


def _looked_over(condition: str) -> set[str]:
    """The variables of its comprehensions. Raises `BadCondition` for what may not be in a condition."""
    tokens = list(_tokens(condition))
    if len(tokens) > MOST_TOKENS:
        raise BadCondition(f"has more than {MOST_TOKENS} words and signs")
    depths = list(accumulate((token in _OPENS) - (token in _CLOSES) for token in tokens))
    if max(depths, default=0) > DEEPEST:
        raise BadCondition(f"has brackets more than {DEEPEST} deep")
    comprehensions: list[int] = []
    for n in _calls(tokens):
        method = n > 0 and tokens[n - 1] == "."
        if method and tokens[n] in _COMPREHENSIONS:
            comprehensions.append(n)
        elif tokens[n] not in (_METHODS if method else _FUNCTIONS):
            raise BadCondition(f"calls {tokens[n]!r}, which is not available")
    return _bound(tokens, depths, comprehensions)


def _calls(tokens: Sequence[str]) -> Iterator[int]:
    for n, (token, behind) in enumerate(pairwise(tokens)):
        if behind == "(" and token.isidentifier() and token not in _WORDS:
            yield n


def _bound(tokens: Sequence[str], depths: Sequence[int], comprehensions: Sequence[int]) -> set[str]:
    if len(comprehensions) > _MOST_COMPREHENSIONS:
        raise BadCondition(f"has more than {_MOST_COMPREHENSIONS} comprehensions")
    end = 0
    for n in comprehensions:
        if n < end:
            raise BadCondition(f"has {tokens[n]} inside another comprehension")
        if _path_before(tokens, n - 1) not in _LISTS:
            raise BadCondition(f"uses {tokens[n]} on something else than {' or '.join(sorted(_LISTS))}")
        end = next((at for at in range(n + 2, len(tokens)) if depths[at] <= depths[n]), len(tokens))
    bound = {token for n in comprehensions for token in tokens[n + 2 : n + 3]}
    if bound & EXAMPLES.keys():
        raise BadCondition("gives a variable of its own the name of one that there is")
    return bound


def _tokens(condition: str) -> Iterator[str]:
    place = 0
    before = ""
    while place < len(condition):
        found = _TOKEN.match(condition, place)
        if found is None:
            raise BadCondition(f"cannot be read at character {place + 1}: {condition[place]!r}")
        kind, token = found.lastgroup, found[0]
        # `r"..."`, `b"..."` and `\"\"\"...\"\"\"`: another reading of what is text would let anything hide in it.
        if kind == "text" and before in {"name", "text"}:
            raise BadCondition(f"has a text at character {place + 1} that is not written as \"...\" or '...'")
        if kind is not None:
            yield token
        before, place = kind or "", found.end()


def _path_before(tokens: Sequence[str], dot: int) -> str:
    """The names, joined by dots, before the dot at `dot`; empty where they are something else's."""
    path: list[str] = []
    while dot > 0 and tokens[dot] == "." and tokens[dot - 1].isidentifier():
        path.insert(0, tokens[dot - 1])
        dot -= 2
    return "" if dot >= 0 and tokens[dot] == "." else ".".join(path)


def _spoken(error: BaseException) -> str:
    """The evaluator's reason in one line, without the condition itself."""
    said = str(error)
    _, found, place = said.partition("ERROR: <input>:")
    line = (f"at {place}" if found else said).splitlines()
    return line[0][:300] if line else type(error).__name__
