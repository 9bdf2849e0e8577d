"""Defines the order in which a request is checked, as tuples of steps.

`engine.run` runs these steps for model calls, `engine.mcp` for calls of tools, `engine.scan` for `POST /v1/scan`, and
the platform's admission for the administration API. No other module depends on the order.

To add a stage, write it in `engine/stages`, put its `Step` in one of the tuples below, and name it in the tables of
`engine.mcp.calling`, of `engine.scan` and of the platform's admission. These modules fail to load while a step is
missing.
"""

from collections.abc import Callable, Iterable, Mapping
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import (
    Admitted,
    Cacheable,
    CalledTool,
    CallerRefused,
    CallRequest,
    CheckedCaller,
    Exchange,
    Identified,
    NotRouted,
    Routed,
)
from gatehouse.engine.ports import Ports
from gatehouse.engine.records.samples import CallSample
from gatehouse.engine.stages.callers import (
    authenticate,
    ip_allowlist,
    journal_room,
    maintenance,
    rate_limit,
    scope,
)
from gatehouse.engine.stages.calls import (
    attribution,
    budget,
    content_filters,
    deployment,
    dlp_input,
    dlp_output,
    response_cache,
    response_state,
    sampling,
    tool_access,
    tool_rules,
)
from gatehouse.engine.stages.candidates import (
    kill_switch,
    model_access,
    operation,
    overrides,
    policy_rules,
    registry,
    request_fields,
    responses_api,
    sending,
)
from gatehouse.engine.timing import Timing
from gatehouse.engine.verdict import ALLOW, Hold, Refuse, Verdict
from gatehouse.foundation.counters import RateState
from gatehouse.foundation.errors import Refusal

T = TypeVar("T")

#: A check, called as `check(x, ports)`. It returns a `MaybeVerdict`, or the state that the request has reached.
Check: TypeAlias = Callable[..., Any]
#: The states of a decoded call, in order. Each step gets the state that the previous steps have reached.
CallState: TypeAlias = CallRequest | Routed | Admitted | Cacheable


class Step(NamedTuple):
    """One check, and the part of the header `X-Gateway-Timing` to which its time is added."""

    check: Check
    part: str


#: 1. Before the caller is known: `check(Received)`. These steps run again once the body has arrived.
ARRIVAL: Final = (Step(maintenance.check, "auth"),)

#: 2. `identify(Received)` returns `Identified`, or a `Refuse` with the reason.
IDENTIFY: Final = authenticate.identify
#: `identify_known(Received, Caller)` replaces step 2 for a call whose caller the host has identified, such as a line of
#: a batch.
IDENTIFY_KNOWN: Final = authenticate.identify_known

#: 3. Once the caller is known: `check(Identified)`. `rate_limit.check` may return `RateState`, and
#: `attribution.note_tags` the tags.
CALLER: Final = (
    Step(rate_limit.check, "limits"),
    Step(ip_allowlist.check, "limits"),
    Step(scope.check, "limits"),
)

#: Steps 1 to 3 for administration (`platform/administration/admission.py`), where most paths need no caller.
ADMINISTRATION: Final = (*ARRIVAL, Step(IDENTIFY, "auth"), *CALLER)

#: 3. Additional steps for calls that are recorded. Lists of models are not recorded.
RECORDED: Final = (Step(journal_room.check, "limits"),)

#: 3. Additional steps for calls that cost tokens.
CHARGED: Final = (Step(attribution.note_tags, "limits"), Step(budget.check, "limits"))

#: 3. All steps for the caller of a model, and for the caller of an MCP server.
MODEL_CALLER: Final = (*CALLER, *CHARGED, *RECORDED)
TOOL_CALLER: Final = (*CALLER, *RECORDED)

#: 4. Once the body is decoded: `check(CallRequest)`. `response_state.resolve` may return the call with resolved ids,
#: and `attribution.note_end_user` the end user. The choice of a model follows (`call_steps`).
CALL: Final = (
    Step(dlp_input.name, "dlp_in"),
    Step(response_state.resolve, "filters"),
    Step(content_filters.check, "filters"),
    Step(sampling.choose, "filters"),
    Step(dlp_input.inspect, "dlp_in"),
    Step(attribution.note_end_user, "filters"),
    Step(content_filters.instruct, "filters"),
    Step(overrides.check, "route"),
)

#: 5. For each candidate of the route, including the candidates of a rule with the action ROUTE: `judge(CallRequest,
#: Candidate)`, which does not wait. Refused candidates are removed from the chain.
CANDIDATE: Final = (
    policy_rules.judge,
    model_access.judge,
    overrides.judge,
    registry.judge,
    operation.judge,
    request_fields.judge,
    responses_api.judge,
    kill_switch.judge,
)

#: 5. The steps of `CANDIDATE` that also remove a model from the list of models.
LISTED: Final = (model_access.judge, registry.judge)

#: 6. Once the candidates are known: `reserve(Routed)` returns `Admitted` or a refusal, and `look(Admitted)` returns
#: `Cacheable` if the response cache is used. The call to the provider follows, with retries and fallbacks.
ADMITTED: Final = (Step(budget.reserve, "budget"), Step(response_cache.look, "budget"))
#: 6. The step of `ADMITTED` for a copy that is sent to a shadow. Copies are not answered from the cache.
RESERVE_COPY: Final = budget.reserve

#: 6. Right before the first byte of each attempt: `check(CallRequest, Candidate, ports)`, which does not wait.
SENDING: Final = sending.check

#: 6. Instead of a call to the provider: `again(Cacheable)` returns the cached answer, or None.
CACHED: Final = response_cache.again

#: 7. Before an answer is delivered: `FIRST_CHOICE(Cacheable, Reply)` for the answer of the first candidate, then
#: `WATCH(CallRequest, Reply)` for every answer. Both return a reply that collects its blocks while it is delivered.
FIRST_CHOICE: Final = response_cache.watch
WATCH: Final = sampling.watch

#: 4. to 7. If a step requires an approval: `await_approval(CallRequest, Hold, ports)` waits for the decision. A stream
#: that the guard has halted waits for the approval of `STREAM_HOLD`.
AWAIT_APPROVAL: Final = dlp_output.await_approval
STREAM_HOLD: Final = dlp_output.stream_hold

#: 7. For a complete answer: `inspect(CallRequest, body, ports)`. `STREAM_GUARD` inspects a stream, `ERROR_TEXT` the
#: text of a provider's error.
ANSWER: Final = (Step(sampling.note_answer, "dlp_out"), Step(dlp_output.inspect, "dlp_out"))
STREAM_GUARD: Final = dlp_output.guard
ERROR_TEXT: Final = dlp_output.of_error

#: 4. to 7. For calls of tools: `TOOL_ACCESS` runs first, and again after an approval. Then the arguments pass some
#: steps of `CALL` (`engine.mcp.calling`), and `TOOL_RULES` evaluates the rules about tools. `RESERVE_TOOL_CALL`
#: reserves the call right before it is sent; its settlement is in `mcp.calling`. `TOOL_SENDING` is `SENDING` for
#: requests to MCP servers: `check_sending(Identified, ids, ports)`. `TOOL_RESULT` inspects the result:
#: `inspect(CallRequest, result, size, ports)`.
TOOL_ACCESS: Final = tool_access.check
TOOL_RULES: Final = tool_rules.judge
RESERVE_TOOL_CALL: Final = budget.reserve_tool_call
TOOL_SENDING: Final = tool_access.check_sending
TOOL_RESULT: Final = dlp_output.inspect_tool_result

#: 8. After the end of the request, even if the client has disconnected: `settle(Exchange)`. The record is written next.
#: `settle_steps` adds the copies for shadows.
SETTLE: Final = (deployment.release, budget.settle, response_cache.keep, sampling.keep)


def decoded(x: Identified, call: ModelCall, body_bytes: int, called_tool: CalledTool | None = None) -> CallRequest:
    """Return the state of a call before its steps."""
    policy = x.policy
    return CallRequest(
        identified=x,
        call=call,
        body_bytes=body_bytes,
        inspection=dlp_input.new_inspection(x) if policy.dlp.enabled else None,
        sample=CallSample() if policy.sample_share else None,
        called_tool=called_tool,
    )


def call_request_of(x: CallState) -> CallRequest:
    """Return the call in the state that it has reached."""
    if isinstance(x, CallRequest):
        return x
    return x.admitted.call_request if isinstance(x, Cacheable) else x.call_request


def settle_steps(follow: Callable[[Exchange, Ports], None]) -> tuple[Callable[[Exchange, Ports], None], ...]:
    """Return the steps that settle a request. `follow` starts its copies (`routing.shadows.Shadows.follow`)."""
    return (*SETTLE, follow)


def call_steps(choose: Check) -> tuple[Step, ...]:
    """Return the steps of a call. `choose` chooses the call's candidates (`routing.chain.Chooser.choose`)."""
    return (*CALL, Step(choose, "route"), *ADMITTED)


async def walk(
    steps: Iterable[Step], x: Identified, ports: Ports, timing: Timing | None = None
) -> CheckedCaller | CallerRefused:
    """Run checks of the caller. Return their results, and the refusal of the first check that refuses."""
    rate: RateState | None = None
    tags: tuple[str, ...] = ()
    try:
        for check, _ in steps if timing is None else timing.steps(steps):
            result = check(x, ports)
            if isinstance(result, CoroutineType):
                result = await result
            if result is ALLOW:
                continue
            if isinstance(result, RateState):
                rate = result
            elif isinstance(result, tuple):
                tags = result
            elif isinstance(result, Refuse):
                return CallerRefused(result.error, rate, tags)
            else:
                raise _unexpected(result)
    except Refusal as error:
        # A port refuses the request, for example because the counters cannot be reached.
        return CallerRefused(error, rate, tags)
    return CheckedCaller(x, rate, tags)


def checked(result: CheckedCaller | CallerRefused) -> CheckedCaller:
    """Return the caller if no check refuses it. Raises the `Refusal` otherwise, with the headers of the rate limit."""
    if isinstance(result, CallerRefused):
        error = result.error
        if result.rate is not None:
            error.headers = {**result.rate.headers(), **error.headers}
        try:
            raise error
        finally:
            del result, error
    return result


def note_caller(result: CheckedCaller | CallerRefused, exchange: Exchange) -> None:
    """Store the results of the checks of the caller in the record. Raises the `Refusal` of a check that refuses."""
    exchange.rate, exchange.tags = result.rate, result.tags
    if isinstance(result, CallerRefused):
        try:
            raise result.error
        finally:
            del result


def walk_now(steps: Iterable[Step], x: Any, ports: Ports) -> None:
    """Run checks that allow or refuse. Raises the `Refusal` of the first check that refuses. None of the checks may
    wait."""
    for check, _ in steps:
        verdict = check(x, ports)
        if verdict is not ALLOW:
            try:
                obey(verdict)
            finally:
                del verdict


def obey(verdict: Verdict) -> None:
    """Raise the `Refusal` of a verdict that refuses. Raises `TypeError` for all other verdicts except `ALLOW`, so that
    an unhandled verdict does not let the request pass.

    Callers delete their reference to the verdict. Otherwise the error's traceback would refer to their frame and the
    frame to the error, and only the garbage collector could free both."""
    if verdict is ALLOW:
        return
    if isinstance(verdict, Refuse):
        try:
            raise verdict.error
        finally:
            del verdict
    raise _unexpected(verdict)


def _unexpected(result: object) -> TypeError:
    return TypeError(f"a step returned {type(result).__name__}, which this list of steps cannot have")


def advanced(x: CallState, result: Verdict | CallState | str, exchange: Exchange) -> tuple[CallState, Hold | None]:
    """Return the state of a call after a step with this result, and the hold that a person must approve first. Stores
    the result in the exchange. Raises the `Refusal` of a verdict that refuses."""
    if result is ALLOW:
        return x, None
    if isinstance(result, Admitted):
        exchange.admitted = result
        return result, None
    if isinstance(result, Routed):
        exchange.routed, exchange.choice = result, result.choice
        return result, result.hold
    if isinstance(result, Hold):
        return x, result
    if isinstance(result, Cacheable):
        exchange.cacheable = result
        return result, None
    if isinstance(result, CallRequest):
        exchange.call_request = result
        return result, None
    if isinstance(result, str):
        exchange.end_user = result
        return x, None
    if isinstance(result, NotRouted):
        exchange.choice = result.choice
    try:
        obey(result)
    finally:
        del result
    return x, None


def obeyed(result: T | Refuse) -> T:
    """Return the result if it is not a refusal. Raises the `Refusal` otherwise."""
    if isinstance(result, Refuse):
        try:
            raise result.error
        finally:
            del result
    return result


def table(steps: Iterable[Step], entries: Mapping[Check, T]) -> list[T]:
    """Return the entry of each step, in order. Raises `TypeError` if a step has no entry, or if an entry belongs to no
    step. A caller with its own function for each step uses this to ensure that no step is missing."""
    checks = [step.check for step in steps]
    missing = [f"{check.__module__}.{check.__name__}" for check in checks if check not in entries]
    if missing or len(entries) != len(checks):
        raise TypeError(f"entries for {len(entries)} of {len(checks)} steps; missing: {', '.join(missing) or 'none'}")
    return [entries[check] for check in checks]
