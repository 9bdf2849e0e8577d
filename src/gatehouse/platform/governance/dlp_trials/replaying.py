"""Replays texts to compare a draft of DLP rules with the active policy."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from time import perf_counter
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.engine.dlp.decide import Effect, Hit
from gatehouse.engine.dlp.turns import WorkOwner
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_trials.examining import Direction, Examined, examine
from gatehouse.platform.governance.dlp_trials.excerpts import excerpts
from gatehouse.platform.governance.replays.measuring import Measure
from gatehouse.platform.governance.replays.pace import Pace, one_at_a_time
from gatehouse.platform.governance.replays.recorded import RecordedSample
from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH, CompiledDlpRule, DlpPolicy

#: Maximum number of excerpts of one sample.
MAX_EXCERPTS: Final = 20

_ACTIONS: Final = ("allow", "log_only", "redact", "prompt", "block")


class _PolicyResults:
    """The results of one policy on all samples. The policy is the draft or the active policy."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = dict.fromkeys(_ACTIONS, 0)
        self.rules: dict[tuple[str, str, str], CompiledDlpRule] = {}
        self.samples: Counter[tuple[str, str, str]] = Counter()
        self.matches: Counter[tuple[str, str, str]] = Counter()
        self.costs_us: list[float] = []

    def add(self, effect: str, hits: Iterable[Hit], seconds: float) -> list[str]:
        """Add the result of one sample. Return the names of the rules that matched."""
        self.totals[effect] += 1
        self.costs_us.append(seconds * 1e6)
        names: dict[str, None] = {}
        matched_keys: set[tuple[str, str, str]] = set()
        for hit in hits:
            key = (hit.rule.name, hit.rule.entity_type, hit.rule.source)
            self.rules[key] = hit.rule
            self.matches[key] += 1
            matched_keys.add(key)
            names[hit.rule.name] = None
        self.samples.update(matched_keys)
        return list(names)


class ReplaySample(msgspec.Struct, frozen=True):
    """One sample. Its texts are examined one by one, and the strongest action is the action of the sample. If
    `recorded`, the sample is a request of the organization, and the result contains excerpts. `labels` come from a
    reviewer, and map an entity type to whether the sample contains it."""

    #: Texts of the request.
    texts: Sequence[str]
    id: str | int | None = None
    recorded: bool = False
    labels: Mapping[str, bool] | None = None
    #: Texts of the answer.
    answer: Sequence[str] = ()
    #: Groups whose overrides apply.
    groups: Sequence[UUID] = ()
    #: Recorded action; None if unknown.
    action_then: str | None = None


def from_recorded(sample: RecordedSample) -> ReplaySample:
    contents = sample.contents
    return ReplaySample(
        contents.texts,
        sample.id,
        recorded=True,
        labels=sample.labels,
        answer=contents.answer or (),
        groups=contents.groups,
        action_then=contents.dlp_action,
    )


class _SampleResult(NamedTuple):
    effect: Effect
    #: Hits of each text.
    hits: list[list[Hit]]
    failed: bool


async def replay(
    ports: Ports, draft: DlpPolicy, in_force: DlpPolicy, samples: Sequence[ReplaySample], *, owner: WorkOwner
) -> bytes:
    """Replay the samples and return a `schemas.Replayed` as JSON. The result is encoded by msgspec, because pydantic
    would block the event loop too long for ten thousand results.

    Raises `ReplayRunning`.
    """
    async with one_at_a_time() as pace:
        return msgspec.json.encode(await _replay(ports, draft, in_force, samples, owner=owner, pace=pace))


def _by_direction(sample: ReplaySample) -> Sequence[tuple[Direction, Sequence[str]]]:
    return ("input", sample.texts), ("output", sample.answer)


async def _examine_sample(policy: DlpPolicy, ports: Ports, sample: ReplaySample, owner: WorkOwner) -> _SampleResult:
    examined: list[Examined] = []
    for direction, texts in _by_direction(sample):
        examined += [
            await examine(policy, ports, text, sample.groups, owner=owner, direction=direction) for text in texts
        ]
    effects = [result.effect for result in examined]
    return _SampleResult(
        max(effects, key=DLP_ACTION_STRENGTH.__getitem__, default="allow"),
        [result.decision.hits for result in examined],
        any(result.failures for result in examined),
    )


async def _replay(
    ports: Ports,
    draft: DlpPolicy,
    in_force: DlpPolicy,
    samples: Sequence[ReplaySample],
    *,
    owner: WorkOwner,
    pace: Pace,
) -> dict[str, Any]:
    draft_results, current_results = _PolicyResults(), _PolicyResults()
    measure, measure_in_force, labelled = Measure(), Measure(), 0
    results: list[dict[str, Any]] = []
    differences = {"stricter": 0, "weaker": 0, "same": 0}
    failures = 0
    totals_then = dict.fromkeys(_ACTIONS, 0)
    changed: list[str | int] = []
    for index, sample in enumerate(samples):
        if pace.is_over():
            break
        started = perf_counter()
        new = await _examine_sample(draft, ports, sample, owner)
        draft_done = perf_counter()
        old = await _examine_sample(in_force, ports, sample, owner)
        ended = perf_counter()
        names = draft_results.add(new.effect, chain.from_iterable(new.hits), draft_done - started)
        current_results.add(old.effect, chain.from_iterable(old.hits), ended - draft_done)
        failures += new.failed
        if sample.labels is not None:
            labelled += 1
            measure.add(sample.labels, _entity_types(new))
            measure_in_force.add(sample.labels, _entity_types(old))
        change = DLP_ACTION_STRENGTH[new.effect] - DLP_ACTION_STRENGTH[old.effect]
        differences["stricter" if change > 0 else "weaker" if change < 0 else "same"] += 1
        if sample.action_then is not None:
            totals_then[sample.action_then] += 1
        if sample.id is not None and new.effect != (sample.action_then or old.effect):
            changed.append(sample.id)
        matches = islice(_excerpts(sample, new, old), MAX_EXCERPTS) if sample.recorded else ()
        results.append(
            {
                "index": index,
                "id": sample.id,
                "action": new.effect,
                "action_now": old.effect,
                "action_then": sample.action_then,
                "rules": names,
                "cost_us": round(draft_results.costs_us[-1], 1),
                "matches": list(matches),
            }
        )
        await pace.pause_after(perf_counter() - started)
    return {
        "samples": len(results),
        "complete": len(results) == len(samples),
        "totals": draft_results.totals,
        "totals_now": current_results.totals,
        "totals_then": totals_then,
        "differences": differences,
        "changed": changed,
        "tier_failures": failures,
        "rules": _rules(draft_results, current_results),
        "cost": _cost(draft_results.costs_us, current_results.costs_us),
        "labelled": labelled,
        "measures": [
            {"entity_type": name, **measure.fields(name), **measure_in_force.fields(name, "_now")}
            for name in sorted({name for sample in samples[: len(results)] for name in sample.labels or ()})
        ],
        "results": results,
    }


def _excerpts(sample: ReplaySample, new: _SampleResult, old: _SampleResult) -> Iterator[dict[str, object]]:
    texts = [*sample.texts, *sample.answer]
    for text_index, match in excerpts(texts, new.hits, old.hits):
        is_answer = text_index >= len(sample.texts)
        index = text_index - len(sample.texts) if is_answer else text_index
        yield {**match, "direction": "output" if is_answer else "input", "text": index}


def _entity_types(result: _SampleResult) -> set[str]:
    return {hit.rule.entity_type for hits in result.hits for hit in hits}


def _rules(draft_results: _PolicyResults, current_results: _PolicyResults) -> list[dict[str, Any]]:
    """Return the rules that matched under either policy, by name, entity type and source."""
    rules = []
    for key in draft_results.rules | current_results.rules:
        new, old = draft_results.rules.get(key), current_results.rules.get(key)
        rule = new or old
        assert rule is not None
        rules.append(
            {
                "rule_name": rule.name,
                "entity_type": rule.entity_type,
                "detector_type": rule.detector_type,
                "source": rule.source,
                "action_tier": None if new is None else new.action,
                "action_tier_now": None if old is None else old.action,
                "samples": draft_results.samples[key],
                "samples_now": current_results.samples[key],
                "matches": draft_results.matches[key],
                "matches_now": current_results.matches[key],
            }
        )
    return sorted(rules, key=lambda row: (-row["matches"], -row["matches_now"], row["rule_name"]))


def _cost(draft_us: Sequence[float], in_force_us: Sequence[float]) -> dict[str, float]:
    ordered = sorted(draft_us) or [0.0]
    return {
        "mean_us": round(sum(ordered) / len(ordered), 1),
        "p95_us": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "max_us": round(ordered[-1], 1),
        "mean_us_now": round(sum(in_force_us) / max(1, len(in_force_us)), 1),
    }
