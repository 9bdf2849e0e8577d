"""Amounts of money are counted in whole billionths of a dollar."""

from decimal import Decimal

import pytest

from gatehouse.policy.budgets import nano


@pytest.mark.parametrize(
    ("usd", "counted"),
    [
        ("0", 0),
        ("0.000000001", 1),
        ("0.0000000001", 1),
        ("0.0000000019", 2),
        ("1.0000000001", 1_000_000_001),
        ("2", 2 * 10**9),
    ],
)
def test_fractions_of_a_billionth_are_rounded_up(usd: str, counted: int) -> None:
    assert nano(Decimal(usd)) == counted
