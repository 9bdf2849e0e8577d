"""What a draft would do about many texts, beside what is in force does (replay).

It takes at most half of the worker's time: after each few milliseconds of work it rests as long.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from time import monotonic, perf_counter
from typing import Any, Final

import msgspec

from gatehouse.engine.dlp.decide import Decision
from gatehouse.engine.ports import Ports
from gatehouse.platform.governance.dlp_trials.errors import ReplayRunning
from gatehouse.platform.governance.dlp_trials.examining import examine
from gatehouse.platform.governance.dlp_trials.samples import Sample
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule

#: Seconds after which what was not looked at is left out.
LONGEST: Final = 60.0
#: Seconds of work at a stretch.
_STRETCH: Final = 0.005

_ACTIONS: Final = ("allow", "log_only", "redact", "prompt", "block")
#: One at a time: each worker's own.
_turn: Final = asyncio.Lock()


class _Side:
    """What one of the two policies did: the draft, or what is in force."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = dict.fromkeys(_ACTIONS, 0)
        self.rules: dict[tuple[str, str, str], Rule] = {}
        self.samples: Counter[tuple[str, str, str]] = Counter()
        self.matches: Counter[tuple[str, str, str]] = Counter()
        self.costs: list[float] = []

    def note(self, effect: str, decision: Decision, seconds: float) -> list[str]:
        """The names of the rules that matched."""
        self.totals[effect] += 1
        self.costs.append(seconds * 1e6)
        names: dict[str, None] = {}
        seen: set[tuple[str, str, str]] = set()
        for hit in decision.hits:
            key = (hit.rule.name, hit.rule.entity_type, hit.rule.source)
            self.rules[key] = hit.rule
            self.matches[key] += 1
            seen.add(key)
            names[hit.rule.name] = None
        self.samples.update(seen)
        return list(names)


async def replay(ports: Ports, draft: DlpPolicy, now: DlpPolicy, samples: Sequence[Sample]) -> bytes:
    """A `schemas.Replayed` as JSON: encoded here, since ten thousand results would hold everybody up in pydantic.

    Raises `ReplayRunning`.
    """
    if _turn.locked():
        raise ReplayRunning
    async with _turn:
        return msgspec.json.encode(await _replay(ports, draft, now, samples))


async def _replay(ports: Ports, draft: DlpPolicy, now: DlpPolicy, samples: Sequence[Sample]) -> dict[str, Any]:
    drafted, present = _Side(), _Side()
    results: list[dict[str, Any]] = []
    differences = {"stricter": 0, "weaker": 0, "same": 0}
    failures = 0
    until = monotonic() + LONGEST
    busy = 0.0
    for index, sample in enumerate(samples):
        if monotonic() > until:
            break
        started = perf_counter()
        new = await examine(draft, ports, sample.text)
        between = perf_counter()
        old = await examine(now, ports, sample.text)
        ended = perf_counter()
        names = drafted.note(new.effect, new.decision, between - started)
        present.note(old.effect, old.decision, ended - between)
        failures += bool(new.failures)
        change = STRENGTH[new.effect] - STRENGTH[old.effect]
        differences["stricter" if change > 0 else "weaker" if change < 0 else "same"] += 1
        results.append(
            {
                "index": index,
                "id": sample.id,
                "action": new.effect,
                "action_now": old.effect,
                "rules": names,
                "cost_us": round(drafted.costs[-1], 1),
            }
        )
        busy += perf_counter() - started
        if busy > _STRETCH:
            await asyncio.sleep(busy)
            busy = 0.0
    return {
        "samples": len(results),
        "complete": len(results) == len(samples),
        "totals": drafted.totals,
        "totals_now": present.totals,
        "differences": differences,
        "tier_failures": failures,
        "rules": _rules(drafted, present),
        "cost": _cost(drafted.costs, present.costs),
        "results": results,
    }


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
