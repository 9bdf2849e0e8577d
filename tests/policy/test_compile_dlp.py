from typing import Any
from uuid import UUID

import pytest

from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.dlp.compiled import CompiledDlpRule, DlpPolicy
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, GovernanceRecords

BUNDLE = BundleRecord(id=UUID(int=1), name="Privacy", entity_types=("email", "person"))


def compiled(*rules: DlpRuleRecord, bundles: tuple[BundleRecord, ...] = (BUNDLE,), **flags: bool) -> DlpPolicy:
    policy, faults = compile_dlp(GovernanceRecords(dlp_rules=rules, bundles=bundles), flags)
    assert faults == []
    return policy


def rule(**changed: Any) -> DlpRuleRecord:
    values = {"id": "r", "name": "r", "detector_type": "regex", "entity_type": "email", "action": "log_only", **changed}
    return DlpRuleRecord(**values)


def all_rules(policy: DlpPolicy) -> dict[str, CompiledDlpRule]:
    tiers = (policy.patterns, policy.entities, policy.labels)
    return {rule.id: rule for tier in tiers for rules in tier.values() for rule in rules}


@pytest.mark.parametrize(
    "own",
    [
        rule(),
        rule(pattern="mailto:[a-z]+"),
        rule(pattern="mailto:[a-z]+", custom=True),
        rule(detector_type="ner", entity_type="person"),
        rule(detector_type="llm", labels=("contact details",)),
    ],
)
def test_rules_for_entity_types_of_a_bundle_redact_at_least(own: DlpRuleRecord) -> None:
    assert all_rules(compiled(own))["r"].action == "redact"
    assert all_rules(compiled(own, bundles=()))["r"].action == "log_only"


def test_a_bundle_does_not_change_rules_of_other_entity_types() -> None:
    staff = rule(detector_type="ner", entity_type="employee_name", entities=("person",))
    assert all_rules(compiled(staff))["r"].action == "log_only"


@pytest.mark.parametrize(("asks", "action"), [(True, "redact"), (False, "prompt")])
def test_a_bundle_does_not_weaken_a_prompt_that_blocks(asks: bool, action: str) -> None:
    assert all_rules(compiled(rule(action="prompt"), human_in_loop=asks))["r"].action == action
    assert all_rules(compiled(rule(action="block"), human_in_loop=asks))["r"].action == "block"


def test_an_organization_can_block_unreadable_files() -> None:
    assert not compiled().blocks_unreadable
    assert compiled(block_unreadable=True).blocks_unreadable


def test_additional_entities_of_a_rule_are_sorted_labels() -> None:
    own = rule(detector_type="ner", entity_type="x", entities=("person", "drug_name", "disease"))
    assert compiled(own).open_labels == ("disease", "drug_name")
    assert compiled(rule(detector_type="ner", entity_type="x")).open_labels == ()
