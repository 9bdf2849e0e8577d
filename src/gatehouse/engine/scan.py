"""`POST /v1/scan`: what would be done about a text, without sending it anywhere (decisions of the contract: DLP)."""

from collections.abc import Awaitable
from time import perf_counter
from typing import Annotated, Final, TypeVar

import msgspec

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding import conform, decode_object
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import replaced
from gatehouse.engine.dlp.decide import NOTHING, Decision, Effect, Found
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.exchange import Asked, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages import content_filters, dlp_input, route
from gatehouse.engine.verdict import Hold, Refuse, Reroute, heard
from gatehouse.foundation.errors import Refusal

T = TypeVar("T")

#: What the caller is told about the strongest effect.
_ACTIONS: Final[dict[Effect, str]] = {
    "allow": "ALLOW",
    "log_only": "ALLOW",
    "prompt": "PROMPT",
    "redact": "REDACT",
    "block": "BLOCK",
}
MAX_TEXT: Final = 1_000_000


class ScanRequest(msgspec.Struct):
    """`model` is judged by the policy rules as if the text were sent to it; without one, no rule is asked."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
    model: Annotated[str, msgspec.Meta(max_length=256)] | None = None


class ScanFinding(msgspec.Struct):
    """`start` and `end` are Unicode code points of the text."""

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
    """Raises `MalformedBody`, `NestedTooDeep` or `InvalidField`."""
    return conform(decode_object(body), ScanRequest)


async def scan(x: Identified, request: ScanRequest, ports: Ports) -> tuple[ScanAnswer, Inspection]:
    """The answer, and what it notes. An unknown model's name is redacted in the request. Raises `DlpUnavailable`."""
    inspection = Inspection(x.policy.dlp, x.caller.groups, owner=dlp_input.owner(x.caller))
    examiner = Examiner(inspection, ports.detectors, ports.dlp, "input")
    policy, text = x.policy.dlp, request.text
    call = ModelCall(dialect="", model=request.model or "", stream=False, body={"text": text})
    asked = Asked(identified=x, call=call)
    await heard(dlp_input.name(asked, ports))
    request.model, asked.inspection = call.model or None, inspection
    blocked, took_filters = await _timed(heard(content_filters.check(asked, ports)))
    patterns, took_patterns = await _timed(examiner.patterns(text))
    entities, took_entities = await _timed(examiner.entities_of([text]))
    labels, took_labels = await _timed(examiner.labels_of([text]))
    inspection.seconds = (took_patterns + took_entities + took_labels) / 1000
    found = Found(patterns, entities[0], labels[0])
    decision = await examiner.steps(len(text), inspection.decide_in_steps(found, "input"), otherwise=NOTHING)
    action = _ACTIONS[decision.effect]
    if action != "ALLOW":
        inspection.did(action)
    verdict = _policy(asked, ports) if request.model else PolicyVerdict("ALLOW", None)
    topics = any(each.topics for each in x.policy.filters.of(x.caller.groups))
    answer = ScanAnswer(
        action="BLOCK" if isinstance(blocked, Refuse) or verdict.action == "BLOCK" else action,
        findings=_findings(decision),
        redacted_text=_redacted(text, decision, inspection),
        content_filter=_filter(blocked.error) if isinstance(blocked, Refuse) else None,
        policy=verdict,
        tiers={
            "regex": _run(policy.enabled, took_patterns),
            "ner": _run(bool(policy.entities), took_entities),
            "llm": _run(bool(policy.labels) or topics, took_labels + took_filters * topics),
        },
    )
    return answer, inspection


async def _timed(work: Awaitable[T]) -> tuple[T, float]:
    """With the milliseconds that it took."""
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


def _redacted(text: str, decision: Decision, inspection: Inspection) -> str:
    """Also of a text that is blocked: what its redaction would leave."""
    before = inspection.action
    replacements = inspection.replacements(decision.edits, text)
    inspection.action = before
    return replaced(Slot({}, "text", text), replacements)


def _filter(error: Refusal) -> ContentFilterHit:
    filter_id = error.extra.get("filter_id")
    return ContentFilterHit(error.text, None if filter_id is None else str(filter_id))


def _policy(asked: Asked, ports: Ports) -> PolicyVerdict:
    """What the policy rules say about the first place that the model names. What is no rule's refusal (a model that is
    not there, a kill switch) is none of theirs."""
    found = route.candidates(asked)
    if isinstance(found, Refusal):
        return PolicyVerdict("ALLOW", None)
    for judge in pipeline.OF_A_CANDIDATE:
        verdict = judge(asked, found[0], ports)
        if isinstance(verdict, Refuse) and "rule_id" in verdict.error.extra:
            return PolicyVerdict("BLOCK", str(verdict.error.extra["rule_id"]))
        if isinstance(verdict, Reroute):
            return PolicyVerdict("ROUTE", str(verdict.circle.extra["rule_id"]))
        if isinstance(verdict, Hold):
            return PolicyVerdict("REQUIRE_APPROVAL", verdict.ask.rule_id)
    return PolicyVerdict("ALLOW", None)
