"""Records that were serialized and decoded lead to the same decisions as the original ones."""

from uuid import UUID

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatehouse.detection.scanning.texts import scan
from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.dlp.decide import TierFindings, decide
from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, FilterRecord, GovernanceRecords, PolicyRuleRecord
from gatehouse.policy.snapshot import Snapshot

GROUPS = [UUID(int=number) for number in (1, 2, 3)]
ACTIONS = st.sampled_from(["log_only", "redact", "prompt", "block"])
ENTITIES = st.sampled_from(TAXONOMY)
PATTERNS = st.sampled_from([None, r"PRJ-\d{4}", r"[a-f]{3,8}", r"(?i)secret \w{1,9}"])
TEXTS = st.lists(
    st.sampled_from(
        [
            "card 4242 4242 4242 4242",
            "a@example.com",
            "PRJ-1234",
            "Secret thing",
            "abcdef",
            "10.0.0.1",
            "SSN 536-22-1234",
        ]
    ),
    max_size=6,
).map(" ".join)

RULES = st.lists(
    st.builds(
        DlpRuleRecord, id=st.uuids().map(str), name=st.text(min_size=1, max_size=9), detector_type=st.just("regex"),
        entity_type=ENTITIES, action=ACTIONS, threshold=st.sampled_from([0.0, 0.5, 0.9]), pattern=PATTERNS,
        reversible=st.booleans(),
    ),
    max_size=4,
)  # fmt: skip
GOVERNANCE = st.builds(
    GovernanceRecords,
    dlp_rules=RULES.map(tuple),
    suppressions=st.frozensets(st.sampled_from(["credit-card", "email", "ssn"])),
    overrides=st.dictionaries(
        st.sampled_from(GROUPS), st.dictionaries(ENTITIES, st.sampled_from(["ALLOW", "REDACT", "BLOCK"]), max_size=3)
    ),
    bundles=st.lists(
        st.builds(
            BundleRecord, id=st.uuids(), name=st.just("b"), entity_types=st.lists(ENTITIES, max_size=3).map(tuple)
        ),
        max_size=2,
    ).map(tuple),
    filters=st.lists(
        st.builds(
            FilterRecord, id=st.uuids(), name=st.just("f"), filter_type=st.just("keyword_block"),
            priority=st.integers(0, 9), keywords=st.just(("forbidden",)),
        ),
        max_size=2,
    ).map(tuple),
    policy_rules=st.lists(
        st.builds(
            PolicyRuleRecord, id=st.uuids(), name=st.just("p"), priority=st.integers(0, 9),
            condition=st.just("model == 'one/m'"), action=st.just("BLOCK"),
        ),
        max_size=2,
    ).map(tuple),
)  # fmt: skip


def compiled(records: TenantRecords) -> Snapshot:
    snapshot = compile_policy(records)
    assert isinstance(snapshot, Snapshot), snapshot
    return snapshot


@given(governance=GOVERNANCE, text=TEXTS, groups=st.lists(st.sampled_from(GROUPS), unique=True), asks=st.booleans())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_records_over_a_wire_give_the_same_verdict(
    governance: GovernanceRecords, text: str, groups: list[UUID], asks: bool
) -> None:
    records = TenantRecords(
        tenant_id=TenantId(UUID(int=9)), revision=4, governance=governance, feature_flags={"human_in_loop": asks}
    )
    wired = msgspec.json.decode(msgspec.json.encode(records), type=TenantRecords)
    assert wired == records
    here, there = compiled(records).dlp, compiled(wired).dlp
    findings_here, findings_there = TierFindings(scan(here.matchers, text)), TierFindings(scan(there.matchers, text))
    assert findings_here == findings_there
    assert decide(here, findings_here, groups) == decide(there, findings_there, groups)
