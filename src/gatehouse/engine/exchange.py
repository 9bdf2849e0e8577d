"""One request's life as types. Each step wraps the one before, so that a stage can ask only for what is decided.

Received    bytes from a client                    made by ingress
Identified  + who calls, and their policy          made by `authenticate`
Asked       + the decoded call                     made by `Engine` once the body is read
Routed      + the models that may answer           made by `routing.chain.Chooser`
Admitted    + every check passed                   made by `Engine` before the call
Exchange    all of these and what came of them, for the record: filled as the request proceeds
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.labels import NONE_GIVEN
from gatehouse.engine.fields.naming import Field
from gatehouse.engine.outcome import RuleEvent
from gatehouse.engine.samples import Sample
from gatehouse.engine.tracing import Trace
from gatehouse.engine.verdict import Hold, Refuse
from gatehouse.foundation.counters import RateState
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller
from gatehouse.policy.routing import RoutingPolicy
from gatehouse.policy.rules import Facts
from gatehouse.policy.snapshot import Snapshot

#: Reads a request's body to its end. Raises a `Refusal` for one that is too large or too slow, and `ClientLeft`.
ReadBody: TypeAlias = Callable[[], Awaitable[bytes]]


class ClientLeft(Exception):
    """The client closed the connection before its answer was complete."""


class Received(msgspec.Struct, kw_only=True):
    """`headers` have lower-case names. `started` is monotonic, `received_at` Unix time, both in seconds."""

    request_id: str
    method: str
    path: str
    headers: Mapping[str, str]
    client_address: str
    received_at: float
    started: float
    #: key of `conversation.dialects.DIALECTS`; None for paths that carry no model call
    dialect: str | None = None
    body: bytes = b""


class Identified(msgspec.Struct, kw_only=True):
    received: Received
    caller: Caller
    policy: Snapshot
    #: what the caller's token has to be for
    scope: str
    rate: RateState | None = None
    #: the highest numbers of labels in what was said before, where the request does not hold all of it
    labels: Mapping[str, int] = NONE_GIVEN
    #: from the header `X-Gateway-Tags`
    tags: tuple[str, ...] = ()


class Wants(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What routing goes by: likely tokens (`engine.estimate`), and what the model has to be capable of, as bits of
    `policy.routing.NEEDS`. `embeds`: embeddings are asked for, which chat models do not give."""

    input_tokens: int
    output_tokens: int
    needs: int = 0
    embeds: bool = False
    #: answers that are asked for at once; `output_tokens` are those of all together
    choices: int = 1
    #: whether `input_tokens` were counted, and cannot be told better
    counted: bool = False


class Given(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call gives a model to read, and asks of it (`engine.bound`): `size` is its bytes as JSON; `tokens` are the
    most that they can be, and where it is `filled` there is as much beside them as a model can read. `beside`: it may
    hold or name more than text. `output` is the caller's own limit of an answer's tokens, `choices` how many answers
    are asked for; `predicted`: what the answer will be is sent along."""

    size: int
    tokens: int
    filled: bool
    beside: bool
    output: int | None = None
    choices: int = 1
    predicted: bool = False


class PolicyChoice(msgspec.Struct, kw_only=True):
    """What a routing policy did with a call. `first` is its first choice, before the cost cap was applied;
    `estimated_usd` and `limit_usd` are those of the cap, where it was looked at that closely; `exceeds`: the first
    choice was above it."""

    policy: RoutingPolicy
    first: Candidate | None = None
    estimated_usd: Decimal | None = None
    limit_usd: Decimal | None = None
    exceeds: bool = False


class Cached(msgspec.Struct, kw_only=True):
    """What the response cache has to do with a call. `key` is the request's, `seconds` how long an answer is kept."""

    key: bytes
    seconds: int
    #: the answer that was given before
    found: bytes | None = None
    #: the provider's answer as it comes, while it may be one to keep
    came: list[bytes] | None = None


class Derived(msgspec.Struct, kw_only=True):
    """Values that are derived from a call when they are first needed; None until then."""

    #: the fields that are not ordinary (`engine.fields.naming.Field`)
    fields: tuple[Field, ...] | None = None
    #: the variables of policy rules
    facts: Facts | None = None
    #: derived once the body is as it will be sent
    given: Given | None = None
    wants: Wants | None = None


class Asked(msgspec.Struct, kw_only=True):
    """A decoded call, and what the stages of the call (`pipeline.CALL`, `pipeline.CANDIDATE`) note for its record."""

    identified: Identified
    call: ModelCall
    #: None: DLP did not inspect it
    inspection: Inspection | None = None
    #: what content filters, policy rules, the model registry, request fields and a cost cap did
    rule_events: list[RuleEvent] = []
    #: the user whom the body names, as it is recorded; None: it names none, or DLP did not let the body pass
    end_user: str | None = None
    #: None: no sample of it is kept
    sample: Sample | None = None
    derived: Derived = msgspec.field(default_factory=Derived)


class Routed(msgspec.Struct, kw_only=True):
    """A call and the models that may answer it.

    `chain` has at least one candidate, first choice first. `order` has the names of the models in the order in which
    the caller, and then a fallback chain, name them, whether they may answer or not; it is empty where only one is
    named. `choice` is None where no routing policy applies. `hold`: a person must approve the call first.
    """

    asked: Asked
    chain: tuple[Candidate, ...]
    order: tuple[str, ...] = ()
    choice: PolicyChoice | None = None
    hold: Hold | None = None


class NotRouted(Refuse):
    """No model may answer the call. `choice` is None where no routing policy applies."""

    __slots__ = ("choice",)

    def __init__(self, error: Refusal, choice: PolicyChoice | None = None) -> None:
        super().__init__(error)
        self.choice = choice


class Admitted(msgspec.Struct, kw_only=True):
    """A call that every check has passed, and what the last stages (`pipeline.ADMITTED`) prepare for it.

    `chain` are the candidates that are tried, first choice first, at least one: those of `routed` without the ones
    that a budget excludes.
    """

    routed: Routed
    chain: tuple[Candidate, ...]
    #: what budgets have reserved for it (`engine.ports.Reserved`); None without budgets
    reserved: Any = None
    #: None: the response cache is not used for it
    cached: Cached | None = None

    @property
    def asked(self) -> Asked:
        return self.routed.asked


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one candidate, for the record and for the answer's `attempts`: no secret, no upstream body.
    `retry_after` is in seconds, where the provider asked for a pause."""

    provider: str
    model: str
    status: int | None
    reason: str
    retry_after: float | None = None


class Answered(msgspec.Struct, kw_only=True):
    """What came of a request, for the record: filled as it becomes known.

    `status` is what the client was told; `outcome` one of `success`, `error`, `refused`, `cancelled`, `interrupted`.
    `usage` is None where the provider told none, `cost_usd` where usage or price is unknown.
    """

    identified: Identified
    asked: Asked | None = None
    #: what a routing policy did; None where none applied, or none was reached
    choice: PolicyChoice | None = None
    routed: Routed | None = None
    admitted: Admitted | None = None
    outcome: str = "error"
    status: int = 500
    chosen: Candidate | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None
    #: the same as headers and records have it
    cost_told: str | None = None
    attempts: list[Attempt] = []
    #: where calls were sent whose answer never came: the provider may bill each of them
    unanswered: list[Candidate] = []
    time_to_first_token_ms: float | None = None
    provider_latency_ms: float | None = None
    error_code: str | None = None
    #: None: the request is in no trace
    trace: Trace | None = None
    #: where its time went (`engine.timing.Timing`); None: nobody asked
    timing: Any = None
    #: whether a person was asked before the call, and the client's stream has begun with that
    held: bool = False

    @property
    def routing_policy_id(self) -> str | None:
        """The id of the routing policy that applied, whether the model was named or not."""
        return None if self.choice is None else str(self.choice.policy.id)

    @property
    def cache(self) -> Literal["hit", "miss"] | None:
        """None where the response cache was not used."""
        cached = self.admitted.cached if self.admitted else None
        if cached is None:
            return None
        return "miss" if cached.found is None else "hit"

    @property
    def fallbacks(self) -> int:
        """Models that failed or were passed over before the one that answered; its own tries before the good one are
        none."""
        order = self.routed.order if self.routed else ()
        if not self.attempts and not order:
            return 0
        missed = {f"{attempt.provider}/{attempt.model}" for attempt in self.attempts}
        if self.chosen is not None:
            answering = f"{self.chosen.provider.id}/{self.chosen.model.model_id}"
            if answering in order:
                missed.update(order[: order.index(answering)])
            missed.discard(answering)
        return len(missed)


class Answer(msgspec.Struct, kw_only=True):
    """What ingress writes: a whole body, or a stream of them. Closing the stream early cancels the provider's call."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    #: what `body` tells, where the answer is an error
    refusal: Refusal | None = None
    #: what it is the answer to, for a host that keeps both. None where it is an error from the start
    answered: Answered | None = None
