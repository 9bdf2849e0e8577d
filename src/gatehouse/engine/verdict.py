"""All that a stage may say about a request. A stage never logs, raises HTTP errors or calls the next stage; only
`authenticate`, which comes before there is a policy to judge by, raises its refusals."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.candidate import Candidate
from gatehouse.foundation.errors import Refusal


class Allow:
    """Nothing to object; the next stage looks."""

    __slots__ = ()


class Refuse:
    """The request ends here with this error."""

    __slots__ = ("error",)

    def __init__(self, error: Refusal) -> None:
        self.error = error


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked about, without any of the text. `direction` is `input` or `output`."""

    reason: str
    rule_id: str | None = None
    rule_name: str | None = None
    entity_types: tuple[str, ...] = ()
    direction: str = "input"


class Hold:
    """The request waits for a person's decision. Without an approval it ends with `denied`; `settled` is told which."""

    __slots__ = ("ask", "denied", "settled")

    def __init__(self, ask: Ask, denied: Refusal, settled: Callable[[bool], None] | None = None) -> None:
        self.ask = ask
        self.denied = denied
        self.settled = settled


class Rewrite:
    """The request, or the answer, goes on with another body, for example redacted."""

    __slots__ = ("body",)

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body


class Reroute:
    """Another candidate takes this one's place, and is judged in its turn. `circle` is the error where it has had its
    turn already."""

    __slots__ = ("candidate", "circle")

    def __init__(self, candidate: Candidate, circle: Refusal) -> None:
        self.candidate = candidate
        self.circle = circle


Verdict: TypeAlias = Allow | Refuse | Hold | Rewrite
#: A stage that has nothing to look at, or nothing to wait for, says so at once: a coroutine for each stage that the
#: policy does not use would cost more than its work.
Said: TypeAlias = Verdict | Awaitable[Verdict]

#: The one `Allow` there needs to be.
ALLOW = Allow()


#: What is no such thing has to be waited for.
AT_ONCE: Final = (Allow, Refuse, Hold, Rewrite)


async def heard(said: Said) -> Verdict:
    """What a stage said, waited for if need be."""
    return said if isinstance(said, AT_ONCE) else await said
