"""What a single pattern would find in a text (reference 3, Endpoints, DLP rules: test)."""

import asyncio
from collections.abc import Sequence
from typing import Final

from gatehouse.detection.custom import Refused, custom_pattern
from gatehouse.detection.entities.choosing import own_name
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.models import ENTITIES
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_trials.schemas import NewTest, TestMatch, TestResult
from gatehouse.policy.dlp import DlpPolicy

MOST_MATCHES: Final = 1_000
#: Seconds for compiling and finding. RE2 needs milliseconds; what is bounded is the wait on a busy machine.
_PATIENCE: Final = 10.0


async def test(ports: Ports, asked: NewTest) -> TestResult:
    """Never fails for what is asked: a bad pattern is told in `error`."""
    if asked.rule_type == "regex":
        try:
            return await asyncio.wait_for(asyncio.to_thread(_regex, asked), _PATIENCE)
        except TimeoutError:
            return _told(asked, "the pattern took too long")
    return await _entities(ports, asked)


def _regex(asked: NewTest) -> TestResult:
    try:
        pattern = custom_pattern("test", "test", asked.entity_type, asked.pattern)
    except Refused as refused:
        return _told(asked, str(refused))
    return _shown(asked, Matcher([pattern]).scan(asked.sample_text))


async def _entities(ports: Ports, asked: NewTest) -> TestResult:
    """`ner` and `gliner` ask the same tier: whatever model is behind it."""
    wanted = [own_name(label) for label in asked.pattern.split(",") if label.strip()]
    unknown = [label for label in wanted if label not in ENTITIES]
    if unknown or not wanted:
        named = f"{', '.join(unknown)} is not recognised" if unknown else "no label is named"
        return _told(asked, f"{named}; known are {', '.join(ENTITIES)}")
    inspection = Inspection(DlpPolicy(enabled=True, entities=dict.fromkeys(wanted, ())))
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
        error=error,
    )


def _told(asked: NewTest, error: str) -> TestResult:
    return TestResult(matches=[], match_count=0, rule_type=asked.rule_type, valid_pattern=False, error=error)
