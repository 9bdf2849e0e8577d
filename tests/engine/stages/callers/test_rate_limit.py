"""The rate limit of requests, through the whole engine (docs/rate-limits.md)."""

import asyncio
from uuid import UUID

import msgspec
import pytest
from tests.support.clock import HandClock

from gatehouse.engine.rate_limits.selection import PathLimits
from gatehouse.engine.stages.callers.rate_limit import (
    RateLimited,
    email_of,
    take,
    take_login,
)
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.http import envelopes
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.settings import Settings

USER = Caller(kind=CallerKind.USER, tenant_id=TenantId(UUID(int=1)), user_id=UUID(int=2), rate_key="user:u")
LIMITS = PathLimits(Settings())


class RequestHead(msgspec.Struct):
    method: str = "POST"
    path: str = "/v1/chat/completions"
    client_address: str = "203.0.113.9"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def counters(clock: HandClock) -> MemoryCounters:
    return MemoryCounters(clock)


async def test_exactly_60_of_500_parallel_requests_are_admitted(counters: MemoryCounters) -> None:
    tolls = await asyncio.gather(*[take(RequestHead(), USER, LIMITS, counters) for _ in range(500)])
    assert sum(refusal is None for _, refusal in tolls) == 60


async def test_a_refusal_names_the_limit_and_the_wait(counters: MemoryCounters, clock: HandClock) -> None:
    for _ in range(60):
        await take(RequestHead(), USER, LIMITS, counters)
    clock.move(12.5)
    state, refusal = await take(RequestHead(), USER, LIMITS, counters)
    assert state is not None
    assert isinstance(refusal, RateLimited)
    assert (refusal.status, refusal.code) == (429, "quota_exceeded")
    assert refusal.extra == {"tier": "general", "retry_after": 48}
    assert refusal.headers == {
        "X-RateLimit-Limit": "60",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(clock.start) + 60),
        "Retry-After": "48",
    }
    clock.move(48)
    assert (await take(RequestHead(), USER, LIMITS, counters))[1] is None


async def test_a_refusal_has_the_error_format_of_its_path(counters: MemoryCounters) -> None:
    for _ in range(60):
        await take(RequestHead(), USER, LIMITS, counters)
    _, refusal = await take(RequestHead(), USER, LIMITS, counters)
    assert refusal is not None
    fields = {"tier": "general", "retry_after": 60}
    message = "Limit of 60 requests a minute reached (general). Try again in 60 s."
    error = {"message": message, "type": "rate_limit_error", "code": "quota_exceeded", **fields}
    assert envelopes.gateway(refusal) == {"error": error}
    assert envelopes.oauth(refusal) == {"error": "rate_limit_exceeded", "error_description": message}
    assert envelopes.detail(refusal) == {"error": "rate_limit_exceeded", **fields}


async def test_an_exempt_request_has_no_state(counters: MemoryCounters) -> None:
    assert await take(RequestHead("GET", "/health"), None, LIMITS, counters) == (None, None)
    assert len(counters) == 0


async def test_a_path_with_its_own_tier_has_its_own_count(counters: MemoryCounters) -> None:
    dry_run = RequestHead("POST", "/api/admin/dlp-rules/test")
    for _ in range(60):
        await take(RequestHead(), USER, LIMITS, counters)
    tolls = [await take(dry_run, USER, LIMITS, counters) for _ in range(11)]
    assert [refusal is None for _, refusal in tolls] == [True] * 10 + [False]
    assert tolls[-1][1].extra["tier"] == "POST /api/admin/dlp-rules/test"


async def test_a_failed_authentication_counts_for_the_address_and_not_for_its_callers(
    counters: MemoryCounters,
) -> None:
    tolls = [await take(RequestHead(), None, LIMITS, counters) for _ in range(61)]
    assert tolls[-1][1] is not None
    assert (await take(RequestHead(), USER, LIMITS, counters))[1] is None


async def test_the_eleventh_login_of_an_account_is_refused_from_any_address(
    counters: MemoryCounters,
) -> None:
    for number in range(10):
        state, refusal = await take_login("Ada@Example.com", f"203.0.113.{number}", LIMITS, counters)
        assert refusal is None
        assert state.limit == 10
    _, refusal = await take_login(" ada@example.com", "203.0.113.99", LIMITS, counters)
    assert refusal is not None
    assert refusal.extra["tier"] == "login"
    assert (await take_login("bob@example.com", "203.0.113.1", LIMITS, counters))[1] is None


async def test_one_address_can_try_100_logins_and_refused_attempts_count_for_no_account(
    counters: MemoryCounters,
) -> None:
    tolls = [await take_login(f"{number}@example.com", "203.0.113.9", LIMITS, counters) for number in range(101)]
    assert [refusal is None for _, refusal in tolls] == [True] * 100 + [False]
    assert tolls[-1][1].extra["tier"] == "/api/auth/login"
    # 100 accounts and one address: the refused 101st attempt was not counted.
    assert len(counters) == 101


async def test_without_an_email_the_address_alone_counts(counters: MemoryCounters) -> None:
    tolls = [await take_login(None, "203.0.113.9", LIMITS, counters) for _ in range(101)]
    assert [refusal is None for _, refusal in tolls] == [True] * 100 + [False]


async def test_logins_and_other_requests_to_the_login_path_share_the_address_count(counters: MemoryCounters) -> None:
    await take_login(None, "203.0.113.9", LIMITS, counters)
    state, _ = await take(RequestHead("GET", "/api/auth/login/"), None, LIMITS, counters)
    assert state.remaining == 98


@pytest.mark.parametrize(
    ("body", "email"),
    [
        (b'{"email": "a@b.c", "password": "x"}', "a@b.c"),
        (b'{"username": "a@b.c"}', "a@b.c"),
        (b'{"email": "", "username": "a@b.c"}', "a@b.c"),
        (b'{"email": null, "username": "a@b.c"}', "a@b.c"),
        ('{"email": "a@b.c"}'.encode("utf-16"), "a@b.c"),
        (b'{"email": "a@b.c", "x": NaN}', "a@b.c"),
        (b'{"email": 5}', None),
        (b'{"email": "  "}', None),
        (b'["a@b.c"]', None),
        (b"", None),
        (b"\xff\xfe\x00", None),
        (b"[" * 100_000, None),
        (b'{"email": "' + b"a" * 255 + b'"}', None),
    ],
)
def test_the_limit_parses_the_email_like_the_login(body: bytes, email: str | None) -> None:
    assert email_of(body) == email
