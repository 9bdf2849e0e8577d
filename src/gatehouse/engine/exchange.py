"""The states of a request as types. Each type wraps the previous one, so a stage can only use values that are known.

Received       bytes from a client                      made by ingress
Identified     + the caller and its policy              made by `authenticate`
CheckedCaller  + the results of the caller's checks     made by `pipeline.walk`
CallRequest    + the decoded call                       made by `pipeline.decoded` once the body is read
Routed         + the models that may answer             made by `routing.chain.Chooser`
Admitted       + the reserved amount; all checks passed made by `budget.reserve`
Cacheable      + the cached answer, or its absence      made by `response_cache.look` if the cache is used

The states are frozen, and each is made with all its values: no stage fills a field of an earlier state. A value that is
computed from a call when it is first needed is a function with the decorator `computed_once`.

Some parts of a CallRequest are records, which stages extend, because they are stored no matter which stage ends the
request: the inspection, the rule events, the sample, and the policies under which approvals were decided. DLP replaces
texts in the body, the headers and the model's name of the call. Exchange is the record of the whole request, and
`mcp.recording.ToolCallState` that of a call of a tool (docs/decisions/request-path.md).
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.labels import NO_LABEL_NUMBERS
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.records.samples import CallSample
from gatehouse.engine.records.tracing import Trace
from gatehouse.engine.verdict import Hold, Refuse
from gatehouse.foundation.counters import RateState
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller
from gatehouse.policy.aliases import Alias, Deployment
from gatehouse.policy.catalog import Candidate
from gatehouse.policy.mcp import McpServerRecord, McpToolRecord
from gatehouse.policy.routing import ModelUse, RoutingPolicy
from gatehouse.policy.snapshot import Snapshot

T = TypeVar("T")

#: Reads the whole body of a request. Raises a `Refusal` for a body that is too large or too slow, and `ClientLeft`.
ReadBody: TypeAlias = Callable[[], Awaitable[bytes]]
#: Called once maintenance can no longer refuse a request.
OnAdmitted: TypeAlias = Callable[[], None]


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived. `headers` have lower-case names. `started` is monotonic time and `received_at` Unix
    time, both in seconds."""

    request_id: str
    method: str
    path: str
    headers: Mapping[str, str]
    client_address: str
    received_at: float
    started: float
    #: key of `conversation.dialects.DIALECTS`; None for paths that carry no model call
    dialect: str | None = None
    #: the body, if it is known before the caller; empty if it is read later
    body: bytes = b""
    #: the URL's query, set only for the list of models
    query: str = ""


class RoutingNeeds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The likely tokens of a call (`engine.money.estimate`), and the model capabilities that the call needs, as bits of
    `policy.routing.CAPABILITY_BITS`. `use` is the use of the model that the call needs."""

    input_tokens: int
    output_tokens: int
    needs: int = 0
    use: ModelUse = "chat"
    #: number of requested answers; `output_tokens` is the sum over all of them
    choices: int = 1
    #: whether `input_tokens` is an exact count
    counted: bool = False


class HostContext(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a call that its host has determined in advance, for example for a batch."""

    #: state of the rate limit if the host has already counted the request
    rate: RateState | None = None
    #: the highest numbers of DLP labels in the conversation so far, by entity type, for a request that contains only a
    #: part of the conversation
    last_label_numbers: Mapping[str, int] = NO_LABEL_NUMBERS
    #: releases the amount that the host has reserved for this call in advance; called directly before budgets reserve
    #: the call's own amount
    release_advance: Callable[[], None] | None = None
    #: the needs of a call that is described without its texts, such as that of a simulation
    routing_needs: RoutingNeeds | None = None


NO_CONTEXT: Final = HostContext()


class Identified(msgspec.Struct, frozen=True, kw_only=True):
    received: Received
    caller: Caller
    policy: Snapshot
    #: the scope that the caller's token must have
    scope: str
    host: HostContext = NO_CONTEXT


class CheckedCaller(msgspec.Struct, frozen=True):
    """A request of an identified caller whom no check refuses, and the results of the checks (`pipeline.walk`)."""

    identified: Identified
    #: state of the rate limit; None if no limit applies
    rate: RateState | None
    #: tags from the header `X-Gateway-Tags`
    tags: tuple[str, ...]


class CallerRefused(Refuse):
    """A check refuses the caller. `rate` and `tags` are the results of the checks before it."""

    __slots__ = ("rate", "tags")

    def __init__(self, error: Refusal, rate: RateState | None, tags: tuple[str, ...]) -> None:
        super().__init__(error)
        self.rate = rate
        self.tags = tags


class CallSize(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The size of a call's input, and the size of the answer that it requests (`engine.money.bound`)."""

    json_bytes: int
    #: the highest number of tokens that the body can have
    max_tokens: int
    #: whether the input may fill the model's context window in addition to `max_tokens`
    fills_context: bool
    #: whether the body may contain or refer to images or files
    has_nontext: bool
    #: the caller's own limit on the tokens of an answer
    output_limit: int | None = None
    #: number of requested answers
    choices: int = 1
    #: whether the body contains a predicted output
    has_prediction: bool = False


class PolicyChoice(msgspec.Struct, frozen=True):
    """The routing policy that applied to a call, and its first choice before the cost cap replaced or refused it. If a
    deployment of the same alias replaced it, that deployment is the first choice. None if no model could answer."""

    policy: RoutingPolicy
    first: Candidate | None


class CalledTool(NamedTuple):
    """The tool that a call names."""

    server: McpServerRecord
    tool: McpToolRecord


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded call, and the records of its stages (`pipeline.CALL`, `pipeline.CANDIDATE`)."""

    identified: Identified
    call: ModelCall
    #: size of the body that the client sent; 0 if the call has no such body
    body_bytes: int = 0
    #: None if DLP does not inspect the call (`pipeline.decoded`)
    inspection: Inspection | None = None
    #: results of content filters, policy rules, the model registry, request fields and the cost cap
    rule_events: list[RuleEvent] = []
    #: None if the organization stores no samples
    sample: CallSample | None = None
    #: None for a model call
    called_tool: CalledTool | None = None
    #: the organization's policies after the approvals of the call
    later_policies: list[Snapshot] = []
    #: the results of the functions with the decorator `computed_once`, by function
    computed: dict[Callable[["CallRequest"], Any], Any] = {}


def computed_once(compute: Callable[[CallRequest], T]) -> Callable[[CallRequest], T]:
    """Decorate a function of a call, so that its result is computed at the first use and cached in the call. The first
    use must come after the steps of `pipeline.CALL`, which can change the body. The result must not be None."""

    @functools.wraps(compute)
    def value(x: CallRequest) -> T:
        known = x.computed.get(value)
        if known is None:
            known = x.computed[value] = compute(x)
        return cast("T", known)

    return value


def if_computed(function: Callable[[CallRequest], T], x: CallRequest) -> T | None:
    """Return the cached result of a function with the decorator `computed_once`, or None if it was not computed."""
    return x.computed.get(function)


class Routed(msgspec.Struct, frozen=True, kw_only=True):
    """A call and the models that may answer it.

    `chain` has at least one candidate; the first choice comes first. `order` has the names of the models in the order
    in which the caller, and then a fallback chain, name them. It includes models that may not answer, and is empty if
    only one is named. `choice` is None if no routing policy applies. If `hold` is set, a person must approve the call
    first. `alias` is the model alias that the call names, or None. `deployments` are the deployments of all named
    aliases by `Candidate.name`.
    """

    call_request: CallRequest
    chain: tuple[Candidate, ...]
    order: tuple[str, ...] = ()
    choice: PolicyChoice | None = None
    hold: Hold | None = None
    alias: Alias | None = None
    deployments: Mapping[str, Deployment] | None = None

    def deployment_of(self, candidate: Candidate) -> Deployment | None:
        """Return the deployment with this candidate's catalog entry, or None if the call names no alias with it."""
        return None if self.deployments is None else self.deployments.get(candidate.name)


class NotRouted(Refuse):
    """No model may answer the call. `choice` is None if no routing policy applies."""

    __slots__ = ("choice",)

    def __init__(self, error: Refusal, choice: PolicyChoice | None = None) -> None:
        super().__init__(error)
        self.choice = choice


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has passed every check, and for which budgets have reserved an amount.

    `chain` are the candidates that are tried: the chain of `routed` without the candidates that a budget excludes. It
    has at least one candidate; the first choice comes first.
    """

    routed: Routed
    #: the call of `routed`, which the stages read often
    call_request: CallRequest
    chain: tuple[Candidate, ...]
    #: the amount that budgets have reserved for the call (`engine.ports.Reserved`); None without budgets
    reserved: Any
    #: limit of the answer in tokens that is sent if the caller sets none; None if no budget needs one
    output_limit: int | None = None


class Cacheable(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted call whose answer may come from the response cache or be stored in it. `key` is the key of the call;
    `seconds` is the lifetime of an answer."""

    admitted: Admitted
    key: bytes
    seconds: int
    #: None if the cache has no answer
    cached: "CachedAnswer | None"
    #: collects the provider's answer, to store it
    collected: "CollectedAnswer"

    @property
    def lookup(self) -> Literal["hit", "miss"]:
        """Return whether the cache had an answer."""
        return "miss" if self.cached is None else "hit"


class CachedAnswer(NamedTuple):
    """An answer from the response cache, and the names of the parts of the provider's answer that it lacks."""

    answer: bytes
    lost_parts: tuple[str, ...]


class CollectedAnswer(msgspec.Struct):
    """A provider's answer, collected while it is delivered. `blocks` is empty if the answer must not be cached.
    `lost_parts` are the names of the parts that it lacks."""

    blocks: list[bytes] = []
    lost_parts: tuple[str, ...] = ()


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One failed attempt at one candidate, for the record and for the field `attempts` of the error. It contains no
    secret and no upstream body. `retry_after` is in seconds, or None if the provider has sent none. `duration_ms` is
    None if no call was made. `credential` is the label of the provider's credential, or None if it has only one."""

    provider: str
    model: str
    status: int | None
    reason: str
    retry_after: float | None = None
    duration_ms: float | None = None
    credential: str | None = None


class Exchange(msgspec.Struct, kw_only=True):
    """The record of a request in progress. It has the results of all steps so far, because a request has one record
    and one answer, whichever step ends it. It is not a state: stages get the states that they need.

    `status` is the status that the client received. `outcome` is one of `success`, `error`, `refused`, `cancelled`,
    `interrupted`. `usage` is None if the provider reported none; `cost_usd` is None if the usage or a price is unknown.
    """

    identified: Identified
    #: state of the rate limit; None if no limit applies
    rate: RateState | None = None
    #: tags from the header `X-Gateway-Tags`
    tags: tuple[str, ...] = ()
    call_request: CallRequest | None = None
    #: the end user that the body names, in the recorded form; None if the body names none, or if the request ended
    #: before DLP had inspected the body
    end_user: str | None = None
    #: decision of the routing policy; None if no policy applied, or if the request ended before routing
    choice: PolicyChoice | None = None
    routed: Routed | None = None
    admitted: Admitted | None = None
    #: None if the response cache is not used
    cacheable: Cacheable | None = None
    outcome: str = "error"
    status: int = 500
    chosen: Candidate | None = None
    #: label of the credential with which `chosen` was called; None if the provider has only one
    credential: str | None = None
    #: the place at a deployment that the request occupies (`routing.deployments.load.Place`); None without an alias
    place: Any = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None
    #: `cost_usd` as headers and records show it
    cost_text: str | None = None
    #: failed attempts, oldest first
    attempts: list[Attempt] = []
    #: duration of the attempt at `chosen`, until its whole answer or the first event of its stream; None if no attempt
    #: was answered
    attempt_ms: float | None = None
    #: candidates to which a call was sent and that did not answer; the provider may charge for each of these calls
    unanswered: list[Candidate] = []
    time_to_first_token_ms: float | None = None
    provider_latency_ms: float | None = None
    error_code: str | None = None
    #: None if the request is in no trace
    trace: Trace | None = None
    #: the time of each part (`engine.timing.Timing`); None if the times were not requested
    timing: Any = None
    #: the tools that the gateway runs in this call (`engine.tool_runs.forms.RunForm`); None if it runs none
    tool_run: Any = None
    #: whether the client's stream began before the call, in order to wait for an approval
    stream_awaits_approval: bool = False
    #: whether the request is a copy for a shadow (`routing.shadows`)
    shadow: bool = False

    @property
    def routing_policy_id(self) -> str | None:
        """Return the id of the routing policy that applied, whether or not the caller named the model."""
        return None if self.choice is None else str(self.choice.policy.id)

    @property
    def model_alias(self) -> str | None:
        """Return the name of the model alias whose deployment answered. If no model answered, return the alias that the
        call named. Return None if a model outside an alias answered, or the call named no alias."""
        routed = self.routed
        if routed is None or routed.deployments is None:
            return None
        deployment = None if self.chosen is None else routed.deployment_of(self.chosen)
        if deployment is not None:
            return deployment.alias
        return None if routed.alias is None or self.chosen is not None else routed.alias.name

    @property
    def output_limit(self) -> int | None:
        """Return the limit of the answer that is sent if the caller sets none. None if the request is not admitted."""
        return None if self.admitted is None else self.admitted.output_limit

    @property
    def cache(self) -> Literal["hit", "miss"] | None:
        """Return `hit` or `miss`, or None if the response cache was not used."""
        return None if self.cacheable is None else self.cacheable.lookup

    @property
    def fallbacks(self) -> int:
        """Return the number of models that failed or were skipped before the model that answered. Failed attempts of
        the answering model are not counted."""
        order = self.routed.order if self.routed else ()
        if not self.attempts and not order:
            return 0
        skipped = {f"{attempt.provider}/{attempt.model}" for attempt in self.attempts}
        if self.chosen is not None:
            answering = f"{self.chosen.provider.id}/{self.chosen.model.model_id}"
            if answering in order:
                skipped.update(order[: order.index(answering)])
            skipped.discard(answering)
        return len(skipped)


class Answer(msgspec.Struct, kw_only=True):
    """The response that ingress writes: a whole body, or a stream of blocks. Closing the stream early cancels the call
    to the provider."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    #: the error that `body` reports, if any
    refusal: Refusal | None = None
    #: the request and its result, for a host that stores both; None for an error that occurred before the caller was
    #: known
    exchange: Exchange | None = None
