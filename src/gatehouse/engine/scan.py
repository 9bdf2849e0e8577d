"""`POST /v1/scan`: evaluates content filters, DLP and policy rules on a text without sending it to a provider
(docs/dlp.md)."""

from collections.abc import Awaitable
from time import perf_counter
from typing import Annotated, Final, TypeVar

import msgspec

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import conform, decode_object
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import apply_replacements_in_steps
from gatehouse.engine.dlp.decide import NO_HITS, Decision, Effect, TierFindings
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.exchange import Answer, CallRequest, CheckedCaller, Identified, ReadBody
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.calls import (
    attribution,
    content_filters,
    dlp_input,
    response_state,
    sampling,
)
from gatehouse.engine.stages.calls.content_filters import ContentFilterViolation
from gatehouse.engine.stages.calls.record import scanned
from gatehouse.engine.stages.candidates import overrides, route
from gatehouse.engine.verdict import Hold, Refuse, Reroute, resolved
from gatehouse.foundation.errors import Refusal

T = TypeVar("T")

#: The action that the answer reports, by the strongest effect.
_ACTIONS: Final[dict[Effect, str]] = {
    "allow": "ALLOW",
    "log_only": "ALLOW",
    "prompt": "PROMPT",
    "redact": "REDACT",
    "block": "BLOCK",
}
MAX_TEXT_CHARACTERS: Final = 1_000_000


class ScanRequest(msgspec.Struct):
    """The body of a scan. Policy rules are evaluated as if the text were sent to `model`; without `model`, no rule is
    evaluated."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARACTERS)]
    model: Annotated[str, msgspec.Meta(max_length=256)] | None = None


class ScanFinding(msgspec.Struct):
    """One finding. `start` and `end` are positions in the text in Unicode code points."""

    entity_type: str
    start: int
    end: int
    score: float
    rule_id: str
    detector_type: str
    action_tier: str


class ContentFilterHit(msgspec.Struct):
    message: str
    filter_id: str | None


class PolicyVerdict(msgspec.Struct):
    action: str
    rule_id: str | None


class TierRun(msgspec.Struct):
    ran: bool
    latency_ms: float | None


class ScanAnswer(msgspec.Struct):
    action: str
    findings: list[ScanFinding]
    redacted_text: str
    content_filter: ContentFilterHit | None
    policy: PolicyVerdict
    tiers: dict[str, TierRun]


def decode(body: bytes) -> ScanRequest:
    """Decode the request. Raises `MalformedBody`, `NestedTooDeep` or `InvalidField`."""
    return conform(decode_object(body), ScanRequest)


class _Scan:
    """The state of a scan: one text, and the results of the steps so far."""

    def __init__(self, x: Identified, request: ScanRequest, ports: Ports) -> None:
        policy = x.policy.dlp
        self.request = request
        self.inspection = Inspection(policy, x.caller.groups, owner=dlp_input.owner(x.caller))
        self.examiner = Examiner(self.inspection, ports.detectors, ports.dlp, "input")
        call = ModelCall(dialect="", model=request.model or "", stream=False, body={"text": request.text})
        self.call_request = CallRequest(identified=x, call=call, inspection=self.inspection)
        self.filter_error: Refusal | None = None
        self.decision = NO_HITS
        topics = any(content_filter.topics for content_filter in x.policy.filters.of(x.caller.groups))
        self.tiers = {"regex": policy.enabled, "ner": bool(policy.entities), "llm": bool(policy.labels) or topics}
        self.took_ms = dict.fromkeys(self.tiers, 0.0)
        #: whether a content filter needs the semantic tier
        self.filters_topics = topics


async def answer(x: CheckedCaller, read: ReadBody, ports: Ports) -> Answer:
    """Return the result of a scan. The findings are recorded before the answer is returned. Raises `Refusal`."""
    pipeline.checked(await pipeline.walk(pipeline.RECORDED, x.identified, ports))
    request = decode(await read())
    state = _Scan(x.identified, request, ports)
    try:
        result = await _evaluate(state, ports)
    finally:
        # Record the findings even if the scan fails later, for example because its time is up.
        if events := state.inspection.events():
            await scanned(x.identified, request.model, events, ports)
    headers = {"content-type": "application/json", "X-DLP-Action": result.action}
    if x.rate is not None:
        headers.update(x.rate.headers())
    return Answer(status=200, headers=headers, body=msgspec.json.encode(result))


async def _evaluate(state: _Scan, ports: Ports) -> ScanAnswer:
    """Run the steps of the scan, and return the answer. The name of an unknown model is redacted in the request. Raises
    `DlpUnavailable`."""
    for step in _STEPS:
        if step is not None:
            await step(state, ports)
    request, inspection, decision = state.request, state.inspection, state.decision
    action = _ACTIONS[decision.effect]
    if action != "ALLOW":
        inspection.note_action(action)
    verdict = _policy(state.call_request, ports) if request.model else PolicyVerdict("ALLOW", None)
    return ScanAnswer(
        action="BLOCK" if state.filter_error is not None or verdict.action == "BLOCK" else action,
        findings=_findings(decision),
        redacted_text=await _redacted(request.text, decision, state.examiner),
        content_filter=None if state.filter_error is None else _filter(state.filter_error),
        policy=verdict,
        tiers={tier: _run(ran, state.took_ms[tier]) for tier, ran in state.tiers.items()},
    )


async def _name(state: _Scan, ports: Ports) -> None:
    # A separate inspection, so that values in the name do not take label numbers of the text.
    inspection = Inspection(state.inspection.policy, owner=state.inspection.owner) if state.tiers["regex"] else None
    x = msgspec.structs.replace(state.call_request, inspection=inspection)
    pipeline.obey(await resolved(dlp_input.name(x, ports)))
    state.request.model = x.call.model or None


async def _filters(state: _Scan, ports: Ports) -> None:
    verdict, took_ms = await _timed(resolved(content_filters.check(state.call_request, ports)))
    if isinstance(verdict, Refuse) and isinstance(verdict.error, ContentFilterViolation):
        state.filter_error = verdict.error
    else:
        # A refusal for another reason, for example that the semantic tier is unavailable, ends the scan.
        pipeline.obey(verdict)
    if state.filters_topics:
        state.took_ms["llm"] += took_ms


async def _inspect(state: _Scan, ports: Ports) -> None:
    examiner, text = state.examiner, state.request.text
    patterns, took_patterns = await _timed(examiner.find_patterns(text))
    entities, took_entities = await _timed(examiner.find_entities([text]))
    labels, took_labels = await _timed(examiner.find_labels([text]))
    state.took_ms["regex"] += took_patterns
    state.took_ms["ner"] += took_entities
    state.took_ms["llm"] += took_labels
    state.inspection.seconds = (took_patterns + took_entities + took_labels) / 1000
    findings = TierFindings(patterns, entities[0], labels[0])
    steps = state.inspection.decide_in_steps(findings, "input")
    state.decision = await examiner.run_steps(len(text), steps, fallback=NO_HITS)


#: The function of a scan for each step of a call, in the order of the steps. None if the step does not apply to a text.
_STEPS: Final = pipeline.table(
    pipeline.CALL,
    {
        dlp_input.name: _name,
        response_state.resolve: None,
        content_filters.check: _filters,
        sampling.choose: None,
        dlp_input.inspect: _inspect,
        attribution.note_end_user: None,
        content_filters.instruct: None,
        overrides.check: None,
    },
)


async def _timed(work: Awaitable[T]) -> tuple[T, float]:
    """Return the result of `work` and the time it took, in milliseconds."""
    started = perf_counter()
    result = await work
    return result, (perf_counter() - started) * 1000


def _run(ran: bool, latency_ms: float) -> TierRun:
    return TierRun(ran, round(latency_ms, 3) if ran else None)


def _findings(decision: Decision) -> list[ScanFinding]:
    return [
        ScanFinding(
            hit.rule.entity_type,
            hit.finding.start,
            hit.finding.end,
            round(hit.finding.score, 4),
            hit.rule.id,
            hit.rule.detector_type,
            hit.rule.action,
        )
        for hit in decision.hits
    ]


async def _redacted(text: str, decision: Decision, examiner: Examiner) -> str:
    """Return the redacted text, even if the text is blocked. If there is no time to keep JSON valid, each value is
    replaced without regard to JSON."""
    inspection = examiner.inspection
    before = inspection.action
    replacements = inspection.replacements(decision.edits, text)
    inspection.action = before
    steps = apply_replacements_in_steps(Slot({}, "text", text), replacements)
    fitted: str | None = await examiner.run_steps(len(text), steps, fallback=None)
    if fitted is not None:
        return fitted
    pieces: list[str] = []
    position = 0
    for replacement in replacements:
        pieces += (text[position : replacement.start], replacement.text)
        position = replacement.end
    return "".join([*pieces, text[position:]])


def _filter(error: Refusal) -> ContentFilterHit:
    filter_id = error.extra.get("filter_id")
    return ContentFilterHit(error.text, None if filter_id is None else str(filter_id))


def _policy(call_request: CallRequest, ports: Ports) -> PolicyVerdict:
    """Return the verdict of the policy rules for the first candidate of the named model. Refusals of other stages, such
    as an unknown model or a kill switch, are ignored."""
    candidates = route.candidates(call_request)
    if isinstance(candidates, Refusal):
        return PolicyVerdict("ALLOW", None)
    for judge in pipeline.CANDIDATE:
        verdict = judge(call_request, candidates[0], ports)
        if isinstance(verdict, Refuse) and "rule_id" in verdict.error.extra:
            return PolicyVerdict("BLOCK", str(verdict.error.extra["rule_id"]))
        if isinstance(verdict, Reroute):
            return PolicyVerdict("ROUTE", str(verdict.circle.extra["rule_id"]))
        if isinstance(verdict, Hold):
            return PolicyVerdict("REQUIRE_APPROVAL", verdict.ask.rule_id)
    return PolicyVerdict("ALLOW", None)
