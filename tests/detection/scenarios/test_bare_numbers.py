"""Times and ids in tools' results without a context word are not found as identifiers."""

import json
import random
from collections.abc import Callable

import pytest
from tests.support.engine import TENANT

from gatehouse.detection.scanning.texts import scan
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

NUMBERS: dict[str, tuple[int, int]] = {
    "seconds": (14 * 10**8, 2 * 10**9),
    "milliseconds": (14 * 10**11, 2 * 10**12),
    "microseconds": (15 * 10**14, 19 * 10**14),
    "nanoseconds": (15 * 10**17, 19 * 10**17),
    "ids of 8 digits": (10**7, 10**8),
    "ids of 9 digits": (10**8, 10**9),
    "ids of 10 digits": (10**9, 10**10),
    "ids of 11 digits": (10**10, 10**11),
    "ids of 12 digits": (10**11, 10**12),
    "ids of 17 digits": (10**16, 10**17),
    "ids of 19 digits": (10**18, 10**19),
}
RESULTS: dict[str, Callable[[int], str]] = {
    "alone": str,
    "JSON": lambda number: json.dumps({"created_at": number, "id": number, "ok": True}),
    "a table": lambda number: f"n,when\n1,{number}\n2,{number}\n",
    "a sentence": lambda number: f"The job ended at {number} after two tries.",
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_bare_number_is_not_redacted(kind: str) -> None:
    policy = compile_policy(TenantRecords(tenant_id=TENANT, revision=1))
    assert isinstance(policy, Snapshot)
    chance = random.Random(kind)
    changed = []
    for turn in range(1250):
        # The ids in a table may be identifiers.
        forms = [form for name, form in RESULTS.items() if "ids" not in kind or name != "a table"]
        write = forms[turn % len(forms)]
        text = write(chance.randrange(*NUMBERS[kind]))
        changed += [
            (text, finding.source)
            for finding in scan(policy.dlp.matchers, text)
            for rule in policy.dlp.patterns[finding.source]
            if finding.score >= max(rule.threshold, rule.certain) and rule.action != "log_only"
        ]
    assert changed == []
