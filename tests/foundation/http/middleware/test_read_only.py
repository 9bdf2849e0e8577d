"""Read-only fields in updates: which values are treated as unchanged."""

from typing import Any

import pytest

from gatehouse.foundation.http.middleware.read_only import same


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("2026-11-23T10:00:00Z", "2026-11-23T10:00:00+00:00"),
        ("2026-11-23T11:00:00+01:00", "2026-11-23T10:00:00Z"),
        ("2026-11-23T10:00:00.123Z", "2026-11-23T10:00:00.123456Z"),
        ("0192F3C4-5D6E-7F80-9123-456789ABCDEF", "0192f3c4-5d6e-7f80-9123-456789abcdef"),
        (1, 1.0),
        ({"a": [1, {"at": "2026-11-23T10:00:00Z"}]}, {"a": [1.0, {"at": "2026-11-23T10:00:00+00:00"}]}),
        (None, None),
    ],
)
def test_values_that_mean_the_same_are_unchanged(sent: Any, shown: Any) -> None:
    assert same(sent, shown)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (True, 1),
        ("1", 1),
        ("x", "X"),
        (None, False),
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": 1, "b": None}),
        ("2026-11-23T10:00:00.124Z", "2026-11-23T10:00:00.123456Z"),
        ("2026-11-23", "2026-11-23T00:00:00Z"),
    ],
)
def test_different_values_are_changes(sent: Any, shown: Any) -> None:
    assert not same(sent, shown)
