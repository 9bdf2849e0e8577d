"""The rate limit that applies to a request, and the counter that counts it (docs/rate-limits.md)."""

import json
import time
from uuid import UUID

import msgspec
import pytest

from gatehouse.engine.rate_limits.selection import LimitRule, PathLimits, address_key
from gatehouse.foundation.identity import Caller, CallerKind, Role, TenantId
from gatehouse.foundation.settings import BadSettings, Settings

TENANT = TenantId(UUID(int=1))
USER = Caller(kind=CallerKind.USER, tenant_id=TENANT, user_id=UUID(int=2), rate_key="user:u")
KEY = Caller(kind=CallerKind.API_KEY, tenant_id=TENANT, user_id=UUID(int=2), rate_key="user:u")
ADMIN = Caller(kind=CallerKind.USER, tenant_id=TENANT, user_id=UUID(int=3), rate_key="user:a", role=Role.ADMIN)
AUDITOR = Caller(kind=CallerKind.USER, tenant_id=TENANT, user_id=UUID(int=4), rate_key="user:t", role=Role.AUDITOR)


def client(tier: str) -> Caller:
    return Caller(kind=CallerKind.OAUTH_CLIENT, tenant_id=TENANT, rate_key="oauth:c", rate_limit_tier=tier)


def limits(tiers: dict[str, object] | None = None, **settings: object) -> PathLimits:
    return PathLimits(Settings(rate_limit_tiers=json.dumps(tiers or {}), **settings))


def resolve(method: str, path: str, caller: Caller | None = USER, **settings: object) -> LimitRule | None:
    return limits(**settings).resolve(method, path, caller, "203.0.113.9")


@pytest.mark.parametrize(
    ("method", "path", "caller", "rule"),
    [
        ("GET", "/v1/models", USER, LimitRule("user:u", 60, "general")),
        ("GET", "/v1/models", KEY, LimitRule("user:u", 60, "general")),
        ("GET", "/v1/models", AUDITOR, LimitRule("user:t", 60, "general")),
        ("GET", "/v1/models", None, LimitRule("ip:203.0.113.9", 60, "general")),
        ("POST", "/api/auth/login", None, LimitRule("ip:203.0.113.9|/api/auth/login", 100, "/api/auth/login")),
        ("GET", "/api/auth/login", None, LimitRule("ip:203.0.113.9|/api/auth/login", 100, "/api/auth/login")),
        ("POST", "/api/auth/register", None, LimitRule("ip:203.0.113.9|/api/auth/register", 10, "/api/auth/register")),
        ("POST", "/api/auth/refresh", None, LimitRule("ip:203.0.113.9|/api/auth/refresh", 30, "/api/auth/refresh")),
        (
            "GET",
            "/api/conversations/shared/token",
            None,
            LimitRule("ip:203.0.113.9|/api/conversations/shared/", 30, "/api/conversations/shared/"),
        ),
        (
            "GET",
            "/api/conversations/shared/token",
            USER,
            LimitRule("user:u|/api/conversations/shared/", 30, "/api/conversations/shared/"),
        ),
        (
            "POST",
            "/api/conversations/7/messages",
            USER,
            LimitRule("user:u|POST /api/conversations/{id}/messages", 60, "POST /api/conversations/{id}/messages"),
        ),
        ("GET", "/api/conversations/7/messages", USER, LimitRule("user:u", 60, "general")),
        (
            "POST",
            "/api/admin/dlp-rules/test",
            USER,
            LimitRule("user:u|POST /api/admin/dlp-rules/test", 10, "POST /api/admin/dlp-rules/test"),
        ),
        ("GET", "/api/admin/dlp-rules/test", USER, LimitRule("user:u", 60, "general")),
        (
            "POST",
            "/api/admin/dlp-rules/test",
            ADMIN,
            LimitRule("user:a|POST /api/admin/dlp-rules/test", 10, "POST /api/admin/dlp-rules/test"),
        ),
        (
            "POST",
            "/api/admin/dlp-rules/test",
            client("premium"),
            LimitRule("oauth:c|POST /api/admin/dlp-rules/test", 10, "POST /api/admin/dlp-rules/test"),
        ),
        ("POST", "/api/admin/dlp-rules/test", client("unlimited"), None),
        ("POST", "/api/conversations/7/messages", ADMIN, LimitRule("user:a", 600, "admin")),
        ("POST", "/oauth/token", None, LimitRule("ip:203.0.113.9|POST /oauth/token", 600, "POST /oauth/token")),
        ("GET", "/v1/models", ADMIN, LimitRule("user:a", 600, "admin")),
        ("GET", "/v1/models", client("standard"), LimitRule("oauth:c", 1000, "standard")),
        ("GET", "/v1/models", client("premium"), LimitRule("oauth:c", 5000, "premium")),
        ("GET", "/v1/models", client("platinum"), LimitRule("oauth:c", 1000, "standard")),
        ("GET", "/v1/models", client("unlimited"), None),
        ("GET", "/health", None, None),
        ("GET", "/health/", USER, None),
        ("POST", "/health", None, LimitRule("ip:203.0.113.9", 60, "general")),
        ("OPTIONS", "/api/auth/login", None, None),
    ],
)
def test_each_endpoint_has_its_documented_limit(
    method: str, path: str, caller: Caller | None, rule: LimitRule | None
) -> None:
    assert resolve(method, path, caller) == rule


@pytest.mark.parametrize("probe", ["live", "ready", "startup"])
@pytest.mark.parametrize("caller", [None, USER, ADMIN, client("unlimited")])
def test_probes_are_limited_by_address_to_600_for_every_caller(probe: str, caller: Caller | None) -> None:
    path = f"/api/health/{probe}"
    assert resolve("GET", path, caller) == LimitRule(f"ip:203.0.113.9|{path}", 600, path)


@pytest.mark.parametrize("path", ["/api/auth/login", "/api/auth/register", "/api/auth/refresh"])
@pytest.mark.parametrize("caller", [USER, ADMIN, client("unlimited"), client("premium")])
def test_auth_endpoints_have_their_limit_for_every_caller(path: str, caller: Caller) -> None:
    for settings in ({}, {"rate_limit_admin_exempt": True}):
        assert resolve("POST", path, caller, **settings) == resolve("POST", path, None)


def test_every_rule_takes_precedence_over_the_next() -> None:
    ladder: list[tuple[str, int]] = [
        ("POST /a/{x}/c", 1),
        ("POST /a/b/c", 2),
        ("POST /a/b", 3),
        ("POST /a", 4),
        ("/a/b/c", 5),
        ("/a/b", 6),
        ("/", 7),
    ]
    for step, (key, limit) in enumerate(ladder):
        rule = limits(dict(ladder[step:])).resolve("POST", "/a/b/c", USER, "x")
        assert rule == LimitRule(f"user:u|{key}", limit, key)
    assert resolve("POST", "/a/b/c") == LimitRule("user:u", 60, "general")


def test_a_prefix_matches_only_whole_segments() -> None:
    table = limits({"/v1/chat": 5})
    results = [table.resolve("POST", path, USER, "x") for path in ("/v1/chat", "/v1/chat/completions", "/v1/chats")]
    assert [rule and rule.limit for rule in results] == [5, 5, 60]


def test_the_more_literal_of_two_patterns_wins() -> None:
    table = limits({"GET /a/{x}/{y}": 1, "GET /a/b-long/{y}": 2})
    rule = table.resolve("GET", "/a/b-long/c", USER, "x")
    assert rule is not None
    assert rule.limit == 2


def test_a_parameter_is_one_segment() -> None:
    rule = limits({"GET /a/{x}": 5}).resolve("GET", "/a/b/c", USER, "x")
    assert rule is not None
    assert rule.tier == "general"


def test_tiers_replace_defaults_with_any_name_of_their_parameter() -> None:
    table = limits({"POST /api/conversations/{conversation_id}/messages": 5, "/api/auth/register/": 3})
    results = [
        table.resolve("POST", path, USER, "x") for path in ("/api/conversations/7/messages", "/api/auth/register")
    ]
    assert [rule and rule.limit for rule in results] == [5, 3]


def test_a_tier_over_an_auth_endpoint_still_counts_by_address() -> None:
    rule = limits({"POST /api/auth": 7}).resolve("POST", "/api/auth/login", ADMIN, "203.0.113.9")
    assert rule == LimitRule("ip:203.0.113.9|POST /api/auth", 7, "POST /api/auth")


@pytest.mark.parametrize(
    ("tiers", "named"),
    [
        ("{", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"/a": 0}', "'/a': must be a positive integer, not 0"),
        ('{"/a": -1}', "'/a': must be a positive integer"),
        ('{"/a": 1.5}', "'/a': must be a positive integer"),
        ('{"/a": true}', "'/a': must be a positive integer"),
        ('{"/a": "5"}', "'/a': must be a positive integer"),
        ('{"/a": null}', "'/a': must be a positive integer"),
        ('{"a": 1}', "'a': a path must begin with /"),
        ('{"GET POST /a": 1}', "'GET POST /a': write a path"),
        ('{"/a/{x}": 1}', "'/a/{x}': a path with a parameter needs a method"),
        ('{"/a/.*": 1}', "'/a/.*': a pattern needs a method"),
        ('{"GET /a/(": 1}', "'GET /a/(': not a regular expression"),
        ('{"GET /' + "a*" * 100 + '": 1}', "a pattern has 200 characters at most"),
    ],
)
def test_bad_tiers_are_named(tiers: str, named: str) -> None:
    with pytest.raises(BadSettings, match="RATE_LIMIT_TIERS: ") as caught:
        PathLimits(Settings(rate_limit_tiers=tiers))
    assert named in str(caught.value)


def test_a_pattern_is_a_regular_expression_of_the_whole_path() -> None:
    table = limits({"GET /api/(admin|alerts)(/.*)?": 7, "GET /api/admin/users": 8, "GET ^/v1/usage/[a-z]+$": 9})

    def tier(method: str, path: str) -> int | None:
        rule = table.resolve(method, path, USER, "x")
        return rule and rule.limit

    # A pattern takes precedence over an exact path.
    assert [tier("GET", path) for path in ("/api/admin", "/api/admin/groups", "/api/admin/users")] == [7, 7, 7]
    assert [tier("GET", path) for path in ("/v1/usage/records", "/v1/usage/records/1", "/api/alertsx")] == [9, 60, 60]
    assert tier("POST", "/api/admin/groups") == 60


def test_a_hostile_pattern_matches_in_bounded_time() -> None:
    table = limits({"GET /(a*)*b": 7})
    began = time.monotonic()
    table.resolve("GET", "/" + "a" * 20_000, USER, "x")
    assert time.monotonic() - began < 1


def test_all_bad_tiers_are_named_at_once() -> None:
    with pytest.raises(BadSettings) as caught:
        limits({"/a": 0, "/b": 1, "c": 2})
    assert len(str(caught.value).splitlines()) == 2


def test_the_numbers_come_from_the_settings() -> None:
    table = limits(rate_limit_requests_per_minute=7, rate_limit_admin_rpm=9)
    results = [table.resolve("GET", "/x", caller, "x") for caller in (USER, ADMIN)]
    assert [rule and rule.limit for rule in results] == [7, 9]


def test_an_exempt_admin_has_no_limit_and_others_keep_theirs() -> None:
    assert resolve("GET", "/x", ADMIN, rate_limit_admin_exempt=True) is None
    assert resolve("GET", "/x", USER, rate_limit_admin_exempt=True) == LimitRule("user:u", 60, "general")


@pytest.mark.parametrize("path", ["/v1/models", "/api/conversations/7/messages"])
def test_an_enterprise_override_replaces_every_limit_of_users_but_the_auth_endpoints(path: str) -> None:
    user = Caller(
        kind=CallerKind.USER, tenant_id=TENANT, user_id=UUID(int=2), rate_key="user:u", custom_rate_limit_rpm=900
    )
    admin = Caller(
        kind=CallerKind.USER, tenant_id=TENANT, rate_key="user:a", role=Role.ADMIN, custom_rate_limit_rpm=900
    )
    assert resolve("POST", path, user) == LimitRule("user:u", 900, "enterprise")
    assert resolve("POST", path, admin) == LimitRule("user:a", 900, "enterprise")
    assert resolve("POST", "/api/auth/refresh", user) == resolve("POST", "/api/auth/refresh", None)
    assert resolve("POST", path, admin, rate_limit_admin_exempt=True) is None


def test_an_enterprise_override_does_not_touch_clients() -> None:
    machine = Caller(kind=CallerKind.OAUTH_CLIENT, tenant_id=TENANT, rate_key="oauth:c", custom_rate_limit_rpm=5)
    assert resolve("GET", "/x", machine) == LimitRule("oauth:c", 1000, "standard")


@pytest.mark.parametrize("path", ["/api/admin/dlp-rules/test", "/api/auth/login", "/v1/models", "/api/health/live"])
def test_a_trailing_slash_makes_no_difference(path: str) -> None:
    table = limits()
    assert table.resolve("POST", path, USER, "x") == table.resolve("POST", f"{path}//", USER, "x")


def test_unknown_paths_use_bounded_memory() -> None:
    table = limits()
    for number in range(5000):
        table.resolve("GET", f"/{number}", None, "x")
    table.resolve("GET", "/" + "x" * 1000, None, "x")
    remembered = table._cached_find.cache_info()
    assert remembered.currsize == 4096
    assert remembered.misses == 5000


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("203.0.113.9", "ip:203.0.113.9"),
        ("::ffff:203.0.113.9", "ip:203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "ip:2001:db8:1:2::/64"),
        ("2001:DB8:1:2::9", "ip:2001:db8:1:2::/64"),
        ("fe80::1%eth0", "ip:fe80::/64"),
        ("", "ip:unknown"),
        ("x" * 100, "ip:" + "x" * 64),
    ],
)
def test_an_ipv6_client_is_counted_by_its_network(address: str, key: str) -> None:
    assert address_key(address) == key


KILL_SWITCHES = [
    "/api/v1/admin/kill-switch/models/7/disable",
    "/api/v1/admin/kill-switch/models/7/enable/",
    "/api/v1/admin/kill-switch/providers/openai/disable",
    "/api/v1/admin/kill-switch/providers/openai/enable",
]


@pytest.mark.parametrize("path", KILL_SWITCHES)
def test_a_kill_switch_is_not_limited_for_those_who_may_use_it(path: str) -> None:
    machine = msgspec.structs.replace(client("standard"), scopes=frozenset({"admin:write"}))
    assert [resolve("POST", path, caller) for caller in (ADMIN, machine)] == [None, None]
    custom = msgspec.structs.replace(ADMIN, custom_rate_limit_rpm=3)
    assert resolve("POST", path, custom) is None


@pytest.mark.parametrize("path", KILL_SWITCHES)
def test_a_kill_switch_is_limited_for_all_other_callers(path: str) -> None:
    reader = msgspec.structs.replace(client("standard"), scopes=frozenset({"admin:read"}))
    everywhere = msgspec.structs.replace(client("standard"), tenant_id=None, scopes=frozenset({"admin:write"}))
    key = msgspec.structs.replace(ADMIN, kind=CallerKind.API_KEY, scopes=frozenset({"admin:read"}))
    for caller in (None, USER, AUDITOR, reader, everywhere, key):
        assert resolve("POST", path, caller) is not None
    assert resolve("GET", path, ADMIN) is not None


def test_the_kill_switchs_reports_are_limited() -> None:
    for path in ("/api/v1/admin/kill-switch/propagation", "/api/v1/admin/kill-switch/models/7/disable/more"):
        assert resolve("POST", path, ADMIN) == LimitRule("user:a", 600, "admin")


def test_scans_have_the_plans_limit_and_their_own_count() -> None:
    for caller in (USER, ADMIN, client("unlimited"), msgspec.structs.replace(USER, custom_rate_limit_rpm=7)):
        limited = msgspec.structs.replace(caller, scan_rate_limit_rpm=5)
        assert resolve("POST", "/v1/scan", limited) == LimitRule(f"{caller.rate_key}|scan", 5, "scan")
        assert resolve("POST", "/v1/scan/", limited) == LimitRule(f"{caller.rate_key}|scan", 5, "scan")
        assert resolve("GET", "/v1/models", limited) == resolve("GET", "/v1/models", caller)
    assert resolve("POST", "/v1/scan", USER) == LimitRule("user:u", 60, "general")
