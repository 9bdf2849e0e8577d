"""The order in which a request is checked, as values.

`engine.run` runs these steps for model calls, `engine.scan` for `POST /v1/scan`, and the platform's admission for the
administration API. No other module knows the order.

To add a stage, write it in `engine/stages`, put its `Step` in one of the tuples below, and name it in the tables of
`engine.scan` and of the platform's admission. Both modules fail to load while a step is missing.
"""

from collections.abc import Callable, Iterable, Mapping
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from gatehouse.engine.ports import Ports
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
    dlp_input,
    dlp_output,
    response_cache,
    sampling,
)
from gatehouse.engine.stages.candidates import (
    kill_switch,
    model_access,
    overrides,
    policy_rules,
    registry,
    request_fields,
)
from gatehouse.engine.timing import Timing
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict

T = TypeVar("T")

#: A check, called as `check(x, ports)`. It returns a `MaybeVerdict`. The last step of a call may also return `Routed`.
Check: TypeAlias = Callable[..., Any]


class Step(NamedTuple):
    """One check, and the part of the header `X-Gateway-Timing` to which its time is added."""

    check: Check
    part: str


#: 1. Before the caller is known: `check(Received)`. These steps run again once the body has arrived.
ARRIVAL: Final = (Step(maintenance.check, "auth"),)

#: 2. `identify(Received)` returns `Identified`, or a `Refuse` with the reason.
IDENTIFY: Final = authenticate.identify

#: 3. Once the caller is known: `check(Identified)`.
CALLER: Final = (
    Step(rate_limit.check, "limits"),
    Step(ip_allowlist.check, "limits"),
    Step(scope.check, "limits"),
)

#: Steps 1 to 3 for administration (`platform/administration/admission.py`), where most paths need no caller.
ADMINISTRATION: Final = (*ARRIVAL, Step(IDENTIFY, "auth"), *CALLER)

#: 3. Additional steps for scans, because scans are recorded.
SCANNER: Final = (Step(journal_room.check, "limits"),)

#: 3. For model calls. Lists of models and scans cost nothing, so they have fewer steps.
MODEL_CALLER: Final = (
    *CALLER,
    Step(attribution.note_tags, "limits"),
    Step(budget.check, "limits"),
    Step(journal_room.check, "limits"),
)

#: 4. Once the body is decoded: `check(CallRequest)`. The choice of a model follows (`call_steps`).
CALL: Final = (
    Step(dlp_input.name, "dlp_in"),
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
    request_fields.judge,
    kill_switch.judge,
)

#: 5. The steps of `CANDIDATE` that also remove a model from the list of models.
LISTED: Final = (model_access.judge, registry.judge)

#: 6. Once the candidates are known: `prepare(Admitted)`. The call to the provider follows, with retries and fallbacks.
ADMITTED: Final = (Step(budget.reserve, "budget"), Step(response_cache.look, "budget"))

#: 7. For a complete answer: `inspect(CallRequest, body)`. `STREAM_GUARD` inspects a stream, `ERROR_TEXT` the text of a
#: provider's error.
ANSWER: Final = (sampling.note_answer, dlp_output.inspect)
STREAM_GUARD: Final = dlp_output.guard
ERROR_TEXT: Final = dlp_output.of_error

#: 8. After the end of the request, even if the client has disconnected: `settle(Exchange)`. The record is written next.
SETTLE: Final = (budget.settle, response_cache.keep, sampling.keep)


def call_steps(choose: Check) -> tuple[Step, ...]:
    """Return the steps of a call. The last step chooses the call's candidates (`routing.chain.Chooser.choose`)."""
    return (*CALL, Step(choose, "route"))


async def walk(steps: Iterable[Step], x: Any, ports: Ports, timing: Timing | None = None) -> None:
    """Run checks that allow or refuse. Raises the `Refusal` of the first check that refuses."""
    for check, part in steps:
        verdict = check(x, ports)
        if verdict is not ALLOW:
            if isinstance(verdict, CoroutineType):
                verdict = await verdict
            try:
                obey(verdict)
            finally:
                del verdict
        if timing is not None:
            timing.part(part)


def walk_now(steps: Iterable[Step], x: Any, ports: Ports) -> None:
    """Run checks as `walk` does, without awaiting. None of the checks may wait."""
    for check, _ in steps:
        verdict = check(x, ports)
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
    raise TypeError(f"a step returned {type(verdict).__name__}, which this list of steps cannot have")


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
