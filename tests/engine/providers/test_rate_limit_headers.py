"""The seconds until a provider's exhausted rate limit resets, from headers of OpenAI's and Anthropic's form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gatehouse.engine.providers import rate_limit_headers
from gatehouse.engine.providers.rate_limit_headers import exhausted_seconds

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit_headers, "utc_now", lambda: NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0), ("6m0s", 360.0), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("2m", 120.0), ("1m30.25s", 90.25),
        ("", None), ("soon", None), ("-1s", None), ("1", None), ("9" * 40 + "s", None), ("1s 2s", None),
        ("\u0661s", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("unit", ["requests", "tokens"])
def test_a_duration_until_the_reset(unit: str, text: str, seconds: float | None) -> None:
    headers = {f"x-ratelimit-remaining-{unit}": "0", f"x-ratelimit-reset-{unit}": text}
    assert exhausted_seconds(headers) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ((NOW + timedelta(seconds=9)).isoformat(), 9.0),
        ((NOW + timedelta(seconds=9)).astimezone(timezone(timedelta(hours=5))).isoformat(), 9.0),
        ("2026-03-01T12:00:09Z", 9.0),
        ((NOW - timedelta(seconds=9)).isoformat(), 0.0),
        ("2026-03-01T12:00:09", None),
        ("tomorrow", None),
    ],
)
def test_a_time_of_the_reset(text: str, seconds: float | None) -> None:
    headers = {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": text}
    assert exhausted_seconds(headers) == seconds


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-remaining-requests": "0"},
        {"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1s"},
        {"x-ratelimit-reset-requests": "1s"},
    ],
)
def test_a_limit_that_is_not_exhausted(headers: dict[str, str]) -> None:
    assert exhausted_seconds(headers) is None
