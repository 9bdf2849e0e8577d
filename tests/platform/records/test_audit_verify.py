"""`gatehouse audit verify` and GET /v1/audit/verification detect changes that the owner of the database makes."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner
from tests.platform.records.test_audit_events import make_events
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.cli.main import cli
from gatehouse.platform.changes.chain.links import AuditEvent, link
from gatehouse.platform.records.audit.checking import Break

VERIFICATION = "/v1/audit/verification"
Chain = Callable[[str], Awaitable[list[int]]]


async def verified(tenant: Tenant, limit: int) -> tuple[list[Break], int]:
    """Verify the chain through the API in parts of `limit` events. Return the breaks and the number of events."""
    breaks, events, after = [], 0, 0
    while after is not None:
        answer = await tenant.auditor.client.get(VERIFICATION, params={"after": after, "limit": limit})
        assert answer.status_code == 200, answer.text
        part = answer.json()
        assert part["break_count"] == len(part["breaks"])
        breaks += [Break(**place) for place in part["breaks"]]
        events, after = events + part["events"], part["next_after"]
    return breaks, events


@pytest.fixture
async def chain(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> Chain:
    """Create eight events of administration and the gateway. Return a function that runs a statement on them and
    returns where the chain is broken, according to the command and the API."""
    await make_events(tenant, 3)
    await journal.append(*(outcome(tenant.id, user_id=tenant.user.id, ip=f"203.0.113.{item}") for item in range(3)))
    await journal.drain()
    await make_events(tenant, 2)

    async def tampered(statement: str) -> list[int]:
        assert platform.breaks(tenant) == []
        assert await verified(tenant, 3) == ([], 8)
        platform.sql(statement.replace("THE_CHAIN", f"tenant_id = '{tenant.id}'"))
        breaks = platform.breaks(tenant)
        for limit in (3, 5_000):
            assert (await verified(tenant, limit))[0] == breaks
        return [gap.sequence for gap in breaks]

    return tampered


@pytest.mark.parametrize(
    "change",
    [
        "reason = 'because'", "action = 'user.deleted'", "outcome = 'error'", "actor_id = 'someone'", "ip = '::1'",
        "details = details || '{\"status\": 500}'", "details = '{}'", "timestamp = timestamp - interval '1 second'",
        "target_model = 'other'", "request_id = 'other'", "id = gen_random_uuid()", "salt = '\\x00'",
        "personal_digest = sha256('x')", "actor_type = 'system'", "resource_id = 'x'",
    ],
)  # fmt: skip
async def test_a_changed_event_is_named(chain: Chain, change: str) -> None:
    assert await chain(f"UPDATE audit_events SET {change} WHERE THE_CHAIN AND sequence = 5") == [5]


async def test_a_changed_hash_breaks_the_event_and_the_one_after_it(chain: Chain) -> None:
    assert await chain("UPDATE audit_events SET hash = sha256('x') WHERE THE_CHAIN AND sequence = 5") == [5, 6]


class Forger:
    """Rewrite events of a chain together with their hashes, as the owner of the database could."""

    def __init__(self, platform: RunningPlatform, tenant: Tenant) -> None:
        self._platform, self._tenant = platform, tenant

    def rewrite(self, sequence: int, *, reason: str | None = None, prev_hash: bytes | None = None) -> bytes:
        """Change the event and set the hash that matches its new content. Return this hash."""
        names = [*AuditEvent.__struct_fields__, "prev_hash", "personal_digest"]
        query = f"SELECT {', '.join(names)} FROM audit_events WHERE tenant_id = %s AND sequence = %s"
        [values] = self._platform.sql(query, [self._tenant.id, sequence])
        row = dict(zip(names, values, strict=True))
        previous, personal = prev_hash or row.pop("prev_hash"), row.pop("personal_digest")
        row.pop("prev_hash", None)
        event = AuditEvent(**{**row, "reason": reason or row["reason"]})
        forged = link(previous, self._tenant.id, sequence, event, personal)
        self._platform.sql(
            "UPDATE audit_events SET reason = %s, prev_hash = %s, hash = %s WHERE tenant_id = %s AND sequence = %s",
            [event.reason, previous, forged, self._tenant.id, sequence],
        )
        return forged


@pytest.mark.usefixtures("chain")
async def test_an_event_that_was_changed_with_its_hash_is_named_by_the_next(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    Forger(platform, tenant).rewrite(5, reason="forged")
    assert platform.breaks(tenant) == [Break(6, "does not follow the previous event")]


@pytest.mark.usefixtures("chain")
async def test_a_last_event_that_was_changed_together_with_its_hash_differs_from_the_head(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    Forger(platform, tenant).rewrite(8, reason="forged")
    assert platform.breaks(tenant) == [Break(8, "differs from the end that the chain's head names (8)")]


@pytest.mark.usefixtures("chain")
async def test_a_chain_that_was_rewritten_to_its_end_differs_from_the_head(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    forger = Forger(platform, tenant)
    previous = forger.rewrite(5, reason="forged")
    for sequence in (6, 7, 8):
        previous = forger.rewrite(sequence, prev_hash=previous)
    assert [broken.sequence for broken in platform.breaks(tenant)] == [8]


async def test_a_removed_event_is_named(chain: Chain) -> None:
    assert await chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence = 4") == [4]


async def test_a_removed_beginning_is_named(chain: Chain) -> None:
    assert await chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence <= 2") == [1]


async def test_a_removed_end_is_named(chain: Chain) -> None:
    assert await chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence >= 7") == [7]


async def test_two_events_that_changed_places_are_named(chain: Chain) -> None:
    result = await chain("UPDATE audit_events SET sequence = 9 - sequence WHERE THE_CHAIN AND sequence IN (4, 5)")
    assert {4, 5} <= set(result)


async def test_an_inserted_event_is_named(chain: Chain) -> None:
    columns = "actor_type, action, outcome, salt, personal_digest, prev_hash, hash"
    copied = f"SELECT tenant_id, sequence, gen_random_uuid(), timestamp + interval '1 second', {columns}"
    into = f"INSERT INTO audit_events (tenant_id, sequence, id, timestamp, {columns})"
    assert set(await chain(f"{into} {copied} FROM audit_events WHERE THE_CHAIN AND sequence = 3")) == {3}


async def test_an_appended_event_is_named(chain: Chain) -> None:
    columns = "actor_type, action, outcome, salt, personal_digest, prev_hash"
    copied = f"SELECT tenant_id, 9, gen_random_uuid(), timestamp, {columns}, hash"
    into = f"INSERT INTO audit_events (tenant_id, sequence, id, timestamp, {columns}, hash)"
    assert set(await chain(f"{into} {copied} FROM audit_events WHERE THE_CHAIN AND sequence = 8")) == {9}


async def test_a_head_that_was_reset_is_detected(chain: Chain) -> None:
    assert await chain("UPDATE audit_heads SET sequence = 7 WHERE THE_CHAIN") == [8]


async def test_an_anonymised_event_is_still_valid(chain: Chain) -> None:
    """Its personal fields and their salt are removed. The hash covers the other fields and the digest, which remain."""
    forgotten = "actor_id = NULL, ip = NULL, details = '{}', salt = NULL"
    assert await chain(f"UPDATE audit_events SET {forgotten} WHERE THE_CHAIN AND sequence = 5") == []


async def test_the_command_reports_the_position_and_ends_with_status_1(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_events(tenant, 2)
    monkeypatch.setenv("GATEHOUSE_HOME", str(platform.installed.home))
    whole = CliRunner().invoke(cli, ["audit", "verify", "--tenant", tenant.slug])
    assert (whole.exit_code, whole.output) == (0, f"{tenant.slug}: 2 events, the chain is whole\n")
    platform.sql("UPDATE audit_events SET reason = 'x' WHERE tenant_id = %s AND sequence = 2", [tenant.id])
    broken = CliRunner().invoke(cli, ["audit", "verify", "--tenant", tenant.slug])
    assert broken.exit_code == 1
    assert broken.output == f"{tenant.slug}: BROKEN\n  sequence 2: changed: its hash does not match\n"
    unknown = CliRunner().invoke(cli, ["audit", "verify", "--tenant", f"t-{uuid4()}"])
    assert unknown.exit_code == 1
    assert "there is no organization with the slug" in unknown.output


async def test_the_api_verifies_from_an_event_on_and_returns_the_head(tenant: Tenant) -> None:
    await make_events(tenant, 4)
    part = (await tenant.admin.client.get(VERIFICATION, params={"after": 2, "limit": 1})).json()
    events = (await tenant.admin.client.get("/v1/audit/events")).json()["events"]
    assert part == {
        "first_sequence": 3, "last_sequence": 3, "events": 1, "archived_until": 0, "head_sequence": 4,
        "head_hash": events[-1]["hash"], "breaks": [], "break_count": 0, "gaps": [], "next_after": 3,
    }  # fmt: skip
    end = (await tenant.admin.client.get(VERIFICATION, params={"after": 100})).json()
    assert (end["events"], end["last_sequence"], end["next_after"], end["breaks"]) == (0, 4, None, [])


async def test_the_api_verifies_an_empty_chain(tenant: Tenant) -> None:
    assert await verified(tenant, 5_000) == ([], 0)


async def test_only_those_who_read_the_audit_log_verify_it(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(VERIFICATION)).status_code == 401
    assert (await tenant.user.client.get(VERIFICATION)).status_code == 403


async def test_another_organizations_chain_is_not_verified(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await make_events(tenant, 2)
    platform.sql("UPDATE audit_events SET reason = 'x' WHERE tenant_id = %s", [tenant.id])
    assert (await verified(tenant, 5_000))[1] == 2
    assert await verified(other_tenant, 5_000) == ([], 0)


@pytest.mark.parametrize(("name", "value"), [("limit", 0), ("limit", 5_001), ("after", -1), ("after", 2**63)])
async def test_a_bad_part_names_the_parameter(tenant: Tenant, name: str, value: int) -> None:
    answer = await tenant.admin.client.get(VERIFICATION, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", name]
