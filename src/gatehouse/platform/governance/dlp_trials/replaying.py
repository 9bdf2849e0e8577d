"""What a draft would do about many texts, beside what is in force does (replay)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from time import perf_counter
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.engine.dlp.decide import Effect, Hit
from gatehouse.engine.dlp.turns import Owner
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_trials.examining import Direction, Examined, examine
from gatehouse.platform.governance.dlp_trials.excerpts import excerpts
from gatehouse.platform.governance.replays.measuring import Measure
from gatehouse.platform.governance.replays.pace import Pace, one_at_a_time
from gatehouse.platform.governance.replays.recorded import RecordedSample
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule

#: Of one sample.
MOST_EXCERPTS: Final = 20

_ACTIONS: Final = ("allow", "log_only", "redact", "prompt", "block")


class _Side:
    """What one of the two policies did: the draft, or what is in force."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = dict.fromkeys(_ACTIONS, 0)
        self.rules: dict[tuple[str, str, str], Rule] = {}
        self.samples: Counter[tuple[str, str, str]] = Counter()
        self.matches: Counter[tuple[str, str, str]] = Counter()
        self.costs: list[float] = []

    def note(self, effect: str, hits: Iterable[Hit], seconds: float) -> list[str]:
        """The names of the rules that matched."""
        self.totals[effect] += 1
        self.costs.append(seconds * 1e6)
        names: dict[str, None] = {}
        seen: set[tuple[str, str, str]] = set()
        for hit in hits:
            key = (hit.rule.name, hit.rule.entity_type, hit.rule.source)
            self.rules[key] = hit.rule
            self.matches[key] += 1
            seen.add(key)
            names[hit.rule.name] = None
        self.samples.update(seen)
        return list(names)


class Examinee(msgspec.Struct, frozen=True):
    """One sample: its texts are examined one by one, and the strongest action counts. `recorded`: a request's of the
    organization, of which the result has excerpts. `labels` are a reviewer's: whether an entity type is in it."""

    #: a request's
    texts: Sequence[str]
    id: str | int | None = None
    recorded: bool = False
    labels: Mapping[str, bool] | None = None
    #: the texts of the answer to it
    answer: Sequence[str] = ()
    #: whose overrides hold
    groups: Sequence[UUID] = ()
    #: what was done when it was recorded; None: unknown
    action_then: str | None = None


def of_sample(sample: RecordedSample) -> Examinee:
    contents = sample.contents
    return Examinee(
        contents.texts,
        sample.id,
        recorded=True,
        labels=sample.labels,
        answer=contents.answer or (),
        groups=contents.groups,
        action_then=contents.dlp_action,
    )


class _Seen(NamedTuple):
    effect: Effect
    #: by text
    hits: list[list[Hit]]
    failed: bool


async def replay(ports: Ports, draft: DlpPolicy, now: DlpPolicy, samples: Sequence[Examinee], *, owner: Owner) -> bytes:
    """A `schemas.Replayed` as JSON: encoded here, since ten thousand results would hold everybody up in pydantic.

    Raises `ReplayRunning`.
    """
    async with one_at_a_time() as pace:
        return msgspec.json.encode(await _replay(ports, draft, now, samples, owner=owner, pace=pace))


def _by_direction(sample: Examinee) -> Sequence[tuple[Direction, Sequence[str]]]:
    return ("input", sample.texts), ("output", sample.answer)


async def _see(policy: DlpPolicy, ports: Ports, sample: Examinee, owner: Owner) -> _Seen:
    examined: list[Examined] = []
    for direction, texts in _by_direction(sample):
        examined += [
            await examine(policy, ports, text, sample.groups, owner=owner, direction=direction) for text in texts
        ]
    effects = [each.effect for each in examined]
    return _Seen(
        max(effects, key=STRENGTH.__getitem__, default="allow"),
        [each.decision.hits for each in examined],
        any(each.failures for each in examined),
    )


async def _replay(
    ports: Ports, draft: DlpPolicy, now: DlpPolicy, samples: Sequence[Examinee], *, owner: Owner, pace: Pace
) -> dict[str, Any]:
    drafted, present = _Side(), _Side()
    measured, measured_now, labelled = Measure(), Measure(), 0
    results: list[dict[str, Any]] = []
    differences = {"stricter": 0, "weaker": 0, "same": 0}
    failures = 0
    totals_then = dict.fromkeys(_ACTIONS, 0)
    changed: list[str | int] = []
    for index, sample in enumerate(samples):
        if pace.is_over():
            break
        started = perf_counter()
        new = await _see(draft, ports, sample, owner)
        between = perf_counter()
        old = await _see(now, ports, sample, owner)
        ended = perf_counter()
        names = drafted.note(new.effect, chain.from_iterable(new.hits), between - started)
        present.note(old.effect, chain.from_iterable(old.hits), ended - between)
        failures += new.failed
        if sample.labels is not None:
            labelled += 1
            measured.note(sample.labels, _entity_types(new))
            measured_now.note(sample.labels, _entity_types(old))
        change = STRENGTH[new.effect] - STRENGTH[old.effect]
        differences["stricter" if change > 0 else "weaker" if change < 0 else "same"] += 1
        if sample.action_then is not None:
            totals_then[sample.action_then] += 1
        if sample.id is not None and new.effect != (sample.action_then or old.effect):
            changed.append(sample.id)
        excerpted = islice(_excerpts(sample, new, old), MOST_EXCERPTS) if sample.recorded else ()
        results.append(
            {
                "index": index,
                "id": sample.id,
                "action": new.effect,
                "action_now": old.effect,
                "action_then": sample.action_then,
                "rules": names,
                "cost_us": round(drafted.costs[-1], 1),
                "matches": list(excerpted),
            }
        )
        await pace.worked(perf_counter() - started)
    return {
        "samples": len(results),
        "complete": len(results) == len(samples),
        "totals": drafted.totals,
        "totals_now": present.totals,
        "totals_then": totals_then,
        "differences": differences,
        "changed": changed,
        "tier_failures": failures,
        "rules": _rules(drafted, present),
        "cost": _cost(drafted.costs, present.costs),
        "labelled": labelled,
        "measures": [
            {"entity_type": name, **measured.shown(name), **measured_now.shown(name, "_now")}
            for name in sorted({name for sample in samples[: len(results)] for name in sample.labels or ()})
        ],
        "results": results,
    }


def _excerpts(sample: Examinee, new: _Seen, old: _Seen) -> Iterator[dict[str, object]]:
    texts = [*sample.texts, *sample.answer]
    for number, match in excerpts(texts, new.hits, old.hits):
        is_answer = number >= len(sample.texts)
        place = number - len(sample.texts) if is_answer else number
        yield {**match, "direction": "output" if is_answer else "input", "text": place}


def _entity_types(seen: _Seen) -> set[str]:
    return {hit.rule.entity_type for hits in seen.hits for hit in hits}


def _rules(drafted: _Side, present: _Side) -> list[dict[str, Any]]:
    """Those that matched with either policy, told apart by name, entity type and source."""
    told = []
    for key in drafted.rules | present.rules:
        new, old = drafted.rules.get(key), present.rules.get(key)
        rule = new or old
        assert rule is not None
        told.append(
            {
                "rule_name": rule.name,
                "entity_type": rule.entity_type,
                "detector_type": rule.detector_type,
                "source": rule.source,
                "action_tier": None if new is None else new.action,
                "action_tier_now": None if old is None else old.action,
                "samples": drafted.samples[key],
                "samples_now": present.samples[key],
                "matches": drafted.matches[key],
                "matches_now": present.matches[key],
            }
        )
    return sorted(told, key=lambda one: (-one["matches"], -one["matches_now"], one["rule_name"]))


def _cost(drafted: Sequence[float], present: Sequence[float]) -> dict[str, float]:
    ordered = sorted(drafted) or [0.0]
    return {
        "mean_us": round(sum(ordered) / len(ordered), 1),
        "p95_us": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "max_us": round(ordered[-1], 1),
        "mean_us_now": round(sum(present) / max(1, len(present)), 1),
    }
