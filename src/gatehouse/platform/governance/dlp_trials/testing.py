"""Tests a single pattern, or the entities tier, on a text."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from gatehouse.detection.custom import PatternRefused, custom_pattern, stream_max_length
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.detection.findings import Finding, by_place
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.search.as_written import SearchAborted
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_fields import MAX_RECOGNISERS, Recogniser
from gatehouse.platform.governance.dlp_trials.schemas import NewTest, TestMatch, TestResult
from gatehouse.policy.dlp.compile import open_labels
from gatehouse.policy.dlp.compiled import DlpPolicy

MAX_MATCHES: Final = 1_000
#: Time limit for compiling and matching. RE2 needs milliseconds. The limit matters only on a busy machine.
_TIMEOUT_SECONDS: Final = 10.0

_recogniser_names: Final = TypeAdapter(Annotated[list[Recogniser], Field(max_length=MAX_RECOGNISERS)])


async def test(ports: Ports, body: NewTest, recognisers: Recognisers) -> TestResult:
    """Test a pattern. An invalid pattern raises no error. The field `error` of the result explains it."""
    if body.rule_type == "regex":
        try:
            return await asyncio.wait_for(asyncio.to_thread(_regex, body), _TIMEOUT_SECONDS)
        except TimeoutError:
            return _invalid(body, "the pattern took too long")
    return await _entities(ports, body, recognisers)


def _regex(body: NewTest) -> TestResult:
    try:
        pattern = custom_pattern("test", "test", body.entity_type, body.pattern)
    except PatternRefused as refusal:
        return _invalid(body, str(refusal))
    findings: list[Finding] = []
    error = None
    try:
        for slice_findings in Matcher([pattern]).scan_in_slices(body.sample_text):
            findings += slice_findings
    except SearchAborted as aborted:
        error = str(aborted)
    return _result(body, sorted(findings, key=by_place), error)


async def _entities(ports: Ports, body: NewTest, recognisers: Recognisers) -> TestResult:
    """Test the entities tier. The rule types `ner` and `gliner` both use it with the configured model."""
    try:
        names = _recogniser_names.validate_python([label.strip() for label in body.pattern.split(",") if label.strip()])
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        return _invalid(body, f"{first['input']!r}: {first['msg']}" if first["loc"] else first["msg"])
    if not names:
        return _invalid(body, f"no label is named. Known labels: {', '.join(recognisers.names)}")
    for name in names:
        if (refusal := recognisers.refusal(name)) is not None:
            return _invalid(body, refusal)
    policy = DlpPolicy(enabled=True, entities=dict.fromkeys(names, ()), open_labels=open_labels(names))
    inspection = Inspection(policy)
    examiner = Examiner(inspection, ports.detectors, DlpOptions(fail_mode="open"), "input")
    (findings,) = await examiner.find_entities([body.sample_text])
    failure = next((event.rule_name for event in inspection.events()), None)
    error = None if failure is None else f"the entities tier failed ({failure})"
    return _result(body, [finding for finding in findings if finding.source in names], error)


def _result(body: NewTest, findings: Sequence[Finding], error: str | None = None) -> TestResult:
    return TestResult(
        matches=[
            TestMatch(
                start=finding.start,
                end=finding.end,
                matched_text=body.sample_text[finding.start : finding.end],
                entity_type=finding.entity_type,
                action=body.action_tier,
            )
            for finding in findings[:MAX_MATCHES]
        ],
        match_count=len(findings),
        rule_type=body.rule_type,
        valid_pattern=True,
        stream_max_length=stream_max_length(body.pattern) if body.rule_type == "regex" else None,
        error=error,
    )


def _invalid(body: NewTest, error: str) -> TestResult:
    return TestResult(
        matches=[],
        match_count=0,
        rule_type=body.rule_type,
        valid_pattern=False,
        stream_max_length=None,
        error=error,
    )
