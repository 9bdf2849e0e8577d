"""One text through the tiers and the decision, as a request's text goes."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

from gatehouse.detection.findings import Finding
from gatehouse.engine.dlp.decide import NOTHING, Decision, Effect, Found, decide
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.turns import Owner
from gatehouse.engine.ports import Ports
from gatehouse.policy.dlp import DlpPolicy

Direction: TypeAlias = Literal["input", "output"]


class Examined(NamedTuple):
    """`effect` is what would be done about the text; `failures` are tiers that gave no answer, with the reason."""

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
    owner: Owner,
    direction: Direction = "input",
) -> Examined:
    """`trace` takes what was done, in sentences without any of the text. A long text takes its turn as `owner`."""
    told: list[str] = []
    if not policy.enabled:
        if trace is not None:
            trace.append("The feature flag dlp_enabled is off: nothing is inspected.")
        return Examined(NOTHING, "allow")
    inspection = Inspection(policy, groups, owner=owner)
    examiner = Examiner(inspection, ports.detectors, ports.dlp, direction)
    patterns: list[Finding] = []
    entities: list[Finding] = []
    labels: list[Finding] = []
    refused = False
    try:
        patterns = await examiner.patterns(text)
        told.append(f"pattern tier: {len(patterns)} findings")
        (entities,) = await examiner.entities_of([text])
        told.append(_told("entities tier", policy.entities, len(entities)))
        (labels,) = await examiner.labels_of([text])
        told.append(_told("semantic tier", policy.labels, len(labels)))
    except DlpUnavailable:
        refused = True
    failures = tuple(event.rule_name for event in inspection.events())
    then = "blocks the request" if refused else "lets it pass by that tier"
    told += [f"{failure}: the tier gave no answer; DLP_FAIL_MODE {then}" for failure in failures]
    if trace is not None:
        trace += told
    decision = decide(policy, Found(patterns, entities, labels), groups, trace)
    return Examined(decision, "block" if refused else decision.effect, failures)


def _told(tier: str, wanted: object, findings: int) -> str:
    return f"{tier}: {findings} findings" if wanted else f"{tier}: not asked, no rule needs it"
