"""What a single pattern would find in a text (reference 3, Endpoints, DLP rules: test)."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from gatehouse.detection.as_written import SearchGivenUp
from gatehouse.detection.custom import Refused, custom_pattern, stream_max_length
from gatehouse.detection.entities.offered import Recognisers
from gatehouse.detection.findings import Finding, by_place
from gatehouse.detection.matcher import Matcher
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_fields import MOST_RECOGNISERS, Recogniser
from gatehouse.platform.governance.dlp_trials.schemas import NewTest, TestMatch, TestResult
from gatehouse.policy.compile_dlp import open_labels
from gatehouse.policy.dlp import DlpPolicy

MOST_MATCHES: Final = 1_000
#: Seconds for compiling and finding. RE2 needs milliseconds; what is bounded is the wait on a busy machine.
_PATIENCE: Final = 10.0

_labels: Final = TypeAdapter(Annotated[list[Recogniser], Field(max_length=MOST_RECOGNISERS)])


async def test(ports: Ports, asked: NewTest, recognisers: Recognisers) -> TestResult:
    """Never fails for what is asked: a bad pattern is told in `error`."""
    if asked.rule_type == "regex":
        try:
            return await asyncio.wait_for(asyncio.to_thread(_regex, asked), _PATIENCE)
        except TimeoutError:
            return _told(asked, "the pattern took too long")
    return await _entities(ports, asked, recognisers)


def _regex(asked: NewTest) -> TestResult:
    try:
        pattern = custom_pattern("test", "test", asked.entity_type, asked.pattern)
    except Refused as refused:
        return _told(asked, str(refused))
    found: list[Finding] = []
    error = None
    try:
        for part in Matcher([pattern]).scan_in_slices(asked.sample_text):
            found += part
    except SearchGivenUp as given_up:
        error = str(given_up)
    return _shown(asked, sorted(found, key=by_place), error)


async def _entities(ports: Ports, asked: NewTest, recognisers: Recognisers) -> TestResult:
    """`ner` and `gliner` ask the same tier: whatever model is behind it."""
    try:
        wanted = _labels.validate_python([label.strip() for label in asked.pattern.split(",") if label.strip()])
    except ValidationError as refused:
        first = refused.errors(include_url=False)[0]
        return _told(asked, f"{first['input']!r}: {first['msg']}" if first["loc"] else first["msg"])
    if not wanted:
        return _told(asked, f"no label is named: known are {', '.join(recognisers.names)}")
    for name in wanted:
        if (refusal := recognisers.refusal(name)) is not None:
            return _told(asked, refusal)
    policy = DlpPolicy(enabled=True, entities=dict.fromkeys(wanted, ()), open_labels=open_labels(wanted))
    inspection = Inspection(policy)
    examiner = Examiner(inspection, ports.detectors, DlpOptions(fail_mode="open"), "input")
    (found,) = await examiner.entities_of([asked.sample_text])
    failure = next((event.rule_name for event in inspection.events()), None)
    error = None if failure is None else f"the entities tier gave no answer ({failure})"
    return _shown(asked, [finding for finding in found if finding.source in wanted], error)


def _shown(asked: NewTest, found: Sequence[Finding], error: str | None = None) -> TestResult:
    return TestResult(
        matches=[
            TestMatch(
                start=finding.start,
                end=finding.end,
                matched_text=asked.sample_text[finding.start : finding.end],
                entity_type=finding.entity_type,
                action=asked.action_tier,
            )
            for finding in found[:MOST_MATCHES]
        ],
        match_count=len(found),
        rule_type=asked.rule_type,
        valid_pattern=True,
        stream_max_length=stream_max_length(asked.pattern) if asked.rule_type == "regex" else None,
        error=error,
    )


def _told(asked: NewTest, error: str) -> TestResult:
    return TestResult(
        matches=[],
        match_count=0,
        rule_type=asked.rule_type,
        valid_pattern=False,
        stream_max_length=None,
        error=error,
    )
