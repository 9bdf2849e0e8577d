"""Replays recorded requests to compare a draft of policy rules with the active rules and the recorded decisions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from time import perf_counter
from typing import Any, Final

import msgspec

from gatehouse.platform.governance.policies.schemas import (
    PoliciesReplayed,
    PolicyMeasure,
    ReplayedPolicy,
    ReplayedRequest,
)
from gatehouse.platform.governance.replays.measuring import Measure
from gatehouse.platform.governance.replays.pace import Pace, one_at_a_time
from gatehouse.platform.governance.replays.recorded import RecordedSample
from gatehouse.platform.governance.replays.schemas import Differences
from gatehouse.policy.governance import PolicyAction
from gatehouse.policy.rules.conditions import EXAMPLES, FUNCTIONS
from gatehouse.policy.rules.evaluation import (
    POLICY_ACTION_STRENGTH,
    PolicyRule,
    RuleSet,
    Ruling,
    context_of,
    decide,
    matched,
)

_ACTIONS: Final[Sequence[PolicyAction]] = ("ALLOW", "LOG", "REQUIRE_APPROVAL", "ROUTE", "BLOCK")
_ALL: Final = frozenset(EXAMPLES.keys() | FUNCTIONS.keys())


class _RuleSetResults:
    """The decisions of one rule set on all samples. The rule set is the draft or the active rules."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules.rules
        self.totals: dict[PolicyAction, int] = dict.fromkeys(_ACTIONS, 0)
        #: Rules by name, which is unique in an organization.
        self.rules: dict[str, PolicyRule] = {}
        self.samples: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.measure = Measure()

    def decide(self, variables: Mapping[str, Any], expected: PolicyAction | None) -> Ruling:
        ruling = decide(self._rules, context_of(variables, _ALL), variables["model"])
        self.totals[ruling.action] += 1
        for evaluation in ruling.results:
            name = evaluation.rule.name
            self.rules[name] = evaluation.rule
            self.samples[name] += matched(evaluation)
            self.failed[name] += evaluation.result == "failed"
        if expected is not None:
            self.measure.add({action: action == expected for action in _ACTIONS}, {ruling.action})
        return ruling


async def replay(draft: RuleSet, in_force: RuleSet, samples: Sequence[RecordedSample]) -> PoliciesReplayed:
    """Evaluate both rule sets on the samples. Raises `ReplayRunning`."""
    async with one_at_a_time() as pace:
        return await _replay(draft, in_force, samples, pace)


async def _replay(draft: RuleSet, in_force: RuleSet, samples: Sequence[RecordedSample], pace: Pace) -> PoliciesReplayed:
    draft_results, current_results = _RuleSetResults(draft), _RuleSetResults(in_force)
    applicable = [sample for sample in samples if sample.contents.facts is not None]
    totals_then: dict[PolicyAction, int] = dict.fromkeys(_ACTIONS, 0)
    differences = Differences(stricter=0, weaker=0, same=0)
    results: list[ReplayedRequest] = []
    for index, sample in enumerate(applicable):
        if pace.is_over():
            break
        started = perf_counter()
        variables, recorded_action = _variables(sample), sample.contents.policy_action or "ALLOW"
        new = draft_results.decide(variables, sample.expected_action)
        old = current_results.decide(variables, sample.expected_action)
        totals_then[recorded_action] += 1
        change = POLICY_ACTION_STRENGTH[new.action] - POLICY_ACTION_STRENGTH[old.action]
        differences.stricter += change > 0
        differences.weaker += change < 0
        differences.same += change == 0
        results.append(
            ReplayedRequest(
                index=index,
                id=sample.id,
                action=new.action,
                action_now=old.action,
                action_then=recorded_action,
                rules=[evaluation.rule.name for evaluation in new.results if matched(evaluation)],
                failed=[evaluation.rule.name for evaluation in new.results if evaluation.result == "failed"],
                model=variables["model"],
                route_to=new.decisive.route_to if new.decisive and new.action == "ROUTE" else None,
            )
        )
        await pace.pause_after(perf_counter() - started)
    labelled = sum(sample.expected_action is not None for sample in applicable[: len(results)])
    return PoliciesReplayed(
        samples=len(results),
        complete=len(results) == len(applicable),
        left_out=len(samples) - len(applicable),
        totals=draft_results.totals,
        totals_now=current_results.totals,
        totals_then=totals_then,
        differences=differences,
        changed=[result.id for result in results if result.action != result.action_then],
        labelled=labelled,
        measures=[
            PolicyMeasure(
                action=action, **draft_results.measure.fields(action), **current_results.measure.fields(action, "_now")
            )
            for action in _ACTIONS
            if action in draft_results.measure.names() | current_results.measure.names()
        ],
        rules=_rules(draft_results, current_results),
        results=results,
    )


def _variables(sample: RecordedSample) -> dict[str, Any]:
    assert sample.contents.facts is not None
    return {**sample.contents.facts, "time": msgspec.convert(sample.contents.facts["time"], datetime)}


def _rules(draft_results: _RuleSetResults, current_results: _RuleSetResults) -> list[ReplayedPolicy]:
    """Return the rules of both sets that matched or failed on a sample, by name."""
    shown: list[ReplayedPolicy] = []
    for name in draft_results.rules | current_results.rules:
        new, old = draft_results.rules.get(name), current_results.rules.get(name)
        shown.append(
            ReplayedPolicy(
                rule_name=name,
                action=new.action if new else None,
                action_now=old.action if old else None,
                samples=draft_results.samples[name],
                samples_now=current_results.samples[name],
                failed=draft_results.failed[name],
            )
        )
    return sorted(shown, key=lambda rule: (-rule.samples, -rule.samples_now, rule.rule_name))
