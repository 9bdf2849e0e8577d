"""Examines one text with the tiers and decides about the findings, as for a text of a request."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

from gatehouse.detection.findings import Finding
from gatehouse.engine.dlp.decide import NO_HITS, Decision, Effect, TierFindings, decide
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.turns import WorkOwner
from gatehouse.engine.ports import Ports
from gatehouse.policy.dlp.compiled import DlpPolicy

Direction: TypeAlias = Literal["input", "output"]


class Examined(NamedTuple):
    """Result of an examination. `effect` is the action on the text. `failures` lists the tiers that failed, each with
    its reason."""

    decision: Decision
    effect: Effect
    failures: tuple[str, ...] = ()


async def examine(
    policy: DlpPolicy,
    ports: Ports,
    text: str,
    groups: Sequence[UUID] = (),
    trace: list[str] | None = None,
    *,
    owner: WorkOwner,
    direction: Direction = "input",
) -> Examined:
    """Examine `text`. Append sentences about each step to `trace`. They never contain parts of the text. Long texts of
    different owners are scheduled fairly."""
    steps: list[str] = []
    if not policy.enabled:
        if trace is not None:
            trace.append("The feature flag dlp_enabled is off: nothing is inspected.")
        return Examined(NO_HITS, "allow")
    inspection = Inspection(policy, groups, owner=owner)
    examiner = Examiner(inspection, ports.detectors, ports.dlp, direction)
    patterns: list[Finding] = []
    entities: list[Finding] = []
    labels: list[Finding] = []
    refused = False
    try:
        patterns = await examiner.find_patterns(text)
        steps.append(f"pattern tier: {len(patterns)} findings")
        (entities,) = await examiner.find_entities([text])
        steps.append(_tier_step("entities tier", policy.entities, len(entities)))
        (labels,) = await examiner.find_labels([text])
        steps.append(_tier_step("semantic tier", policy.labels, len(labels)))
    except DlpUnavailable:
        refused = True
    failures = tuple(event.rule_name for event in inspection.events())
    consequence = "blocks the request" if refused else "lets it pass by that tier"
    steps += [f"{failure}: the tier failed; DLP_FAIL_MODE {consequence}" for failure in failures]
    if trace is not None:
        trace += steps
    decision = decide(policy, TierFindings(patterns, entities, labels), groups, trace)
    return Examined(decision, "block" if refused else decision.effect, failures)


def _tier_step(tier: str, rules: object, findings: int) -> str:
    return f"{tier}: {findings} findings" if rules else f"{tier}: not used, no rule needs it"
