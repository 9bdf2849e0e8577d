"""Verdicts: the results of stages.

A stage returns a refusal instead of raising it, and does not call the next stage. It logs only failures that must not
end the request. Exceptions of the ports that it uses pass through.
"""

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from gatehouse.foundation.errors import Refusal
from gatehouse.policy.catalog import Candidate


class Allow:
    """The stage has no objection, so the next stage runs."""

    __slots__ = ()


class Refuse:
    """The request ends with this error."""

    __slots__ = ("error",)

    def __init__(self, error: Refusal) -> None:
        self.error = error


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """The question to an approver, without any of the request's text. `direction` is `input` or `output`."""

    reason: str
    rule_id: str | None = None
    rule_name: str | None = None
    entity_types: tuple[str, ...] = ()
    direction: str = "input"


#: The end of an approval: a person's decision, or `expired` if nobody decided in time, or `cancelled` if the request
#: ended first.
ApprovalResult: TypeAlias = Literal["approved", "denied", "expired", "cancelled"]


class Hold:
    """The request waits for a person's decision. Without an approval, it ends with `denied`. `settled` is called with
    the result."""

    __slots__ = ("ask", "denied", "settled")

    def __init__(self, ask: Ask, denied: Refusal, settled: Callable[[ApprovalResult], None] | None = None) -> None:
        self.ask = ask
        self.denied = denied
        self.settled = settled


class Rewrite:
    """The answer continues with another body, for example a redacted one: an object, or the bytes of a plain text."""

    __slots__ = ("body",)

    def __init__(self, body: dict[str, Any] | bytes) -> None:
        self.body = body


class Reroute:
    """Another candidate replaces this one and is judged too. `circle` is the error if that candidate was already
    judged."""

    __slots__ = ("candidate", "circle")

    def __init__(self, candidate: Candidate, circle: Refusal) -> None:
        self.candidate = candidate
        self.circle = circle


Verdict: TypeAlias = Allow | Refuse | Hold | Rewrite
#: A stage that does not have to wait returns its verdict directly. Creating a coroutine for each stage that the policy
#: does not use would cost more than the work of the stage.
MaybeVerdict: TypeAlias = Verdict | Coroutine[Any, Any, Verdict]

#: The only instance of `Allow`.
ALLOW: Final = Allow()


async def resolved(verdict: MaybeVerdict) -> Verdict:
    """Return the verdict of a stage. Awaits it if it is a coroutine."""
    # An `isinstance` check against the abstract class would take ten times as long.
    if isinstance(verdict, CoroutineType):
        awaited: Verdict = await verdict
        return awaited
    return cast("Verdict", verdict)
