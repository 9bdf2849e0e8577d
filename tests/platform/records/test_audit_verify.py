"""`gatehouse audit verify`: an owner of the database changes a chain, and is found out."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner
from tests.platform.records.test_audit_events import make_events
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.cli.main import cli


@pytest.fixture
async def chain(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> Callable[[str], list[int]]:
    """Eight events of administration and of the gateway. Runs a statement on them; answers where the chain breaks."""
    await make_events(tenant, 3)
    await journal.append(*(outcome(tenant.id, user_id=tenant.user.id, ip=f"203.0.113.{each}") for each in range(3)))
    await journal.drain()
    await make_events(tenant, 2)

    def tampered(statement: str) -> list[int]:
        assert platform.breaks(tenant) == []
        platform.sql(statement.replace("THE_CHAIN", f"tenant_id = '{tenant.id}'"))
        return [each.sequence for each in platform.breaks(tenant)]

    return tampered


@pytest.mark.parametrize(
    "change",
    [
        "reason = 'because'", "action = 'user.deleted'", "outcome = 'error'", "actor_id = 'someone'", "ip = '::1'",
        "details = details || '{\"status\": 500}'", "details = '{}'", "timestamp = timestamp - interval '1 second'",
        "target_model = 'other'", "request_id = 'other'", "id = gen_random_uuid()", "salt = '\\x00'",
        "personal_digest = sha256('x')", "hash = sha256('x')", "actor_type = 'system'", "resource_id = 'x'",
    ],
)  # fmt: skip
async def test_a_changed_event_is_named(chain: Callable[[str], list[int]], change: str) -> None:
    found = chain(f"UPDATE audit_events SET {change} WHERE THE_CHAIN AND sequence = 5")
    # A changed hash is missed by the event after it, too.
    assert found in ([5], [5, 6])


async def test_a_removed_event_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence = 4") == [4]


async def test_a_removed_beginning_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence <= 2") == [1]


async def test_a_removed_end_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence >= 7") == [7]


async def test_two_events_that_changed_places_are_named(chain: Callable[[str], list[int]]) -> None:
    found = chain("UPDATE audit_events SET sequence = 9 - sequence WHERE THE_CHAIN AND sequence IN (4, 5)")
    assert {4, 5} <= set(found)


async def test_an_event_put_in_is_named(chain: Callable[[str], list[int]]) -> None:
    columns = "actor_type, action, outcome, salt, personal_digest, prev_hash, hash"
    copied = f"SELECT tenant_id, sequence, gen_random_uuid(), timestamp + interval '1 second', {columns}"
    into = f"INSERT INTO audit_events (tenant_id, sequence, id, timestamp, {columns})"
    assert set(chain(f"{into} {copied} FROM audit_events WHERE THE_CHAIN AND sequence = 3")) == {3}


async def test_an_event_put_behind_the_end_is_named(chain: Callable[[str], list[int]]) -> None:
    columns = "actor_type, action, outcome, salt, personal_digest, prev_hash"
    copied = f"SELECT tenant_id, 9, gen_random_uuid(), timestamp, {columns}, hash"
    into = f"INSERT INTO audit_events (tenant_id, sequence, id, timestamp, {columns}, hash)"
    assert set(chain(f"{into} {copied} FROM audit_events WHERE THE_CHAIN AND sequence = 8")) == {9}


async def test_a_head_that_was_set_back_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("UPDATE audit_heads SET sequence = 7 WHERE THE_CHAIN") == [8]


async def test_an_anonymised_event_still_holds(chain: Callable[[str], list[int]]) -> None:
    """Its personal fields and their salt are gone; the rest is in the hash, with the digest that stays."""
    forgotten = "actor_id = NULL, ip = NULL, details = '{}', salt = NULL"
    assert chain(f"UPDATE audit_events SET {forgotten} WHERE THE_CHAIN AND sequence = 5") == []


async def test_the_command_says_where_and_ends_with_1(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_events(tenant, 2)
    monkeypatch.setenv("GATEHOUSE_HOME", str(platform.installed.home))
    whole = CliRunner().invoke(cli, ["audit", "verify", "--tenant", tenant.slug])
    assert (whole.exit_code, whole.output) == (0, f"{tenant.slug}: 2 events, the chain is whole\n")
    platform.sql("UPDATE audit_events SET reason = 'x' WHERE tenant_id = %s AND sequence = 2", [tenant.id])
    broken = CliRunner().invoke(cli, ["audit", "verify", "--tenant", tenant.slug])
    assert broken.exit_code == 1
    assert broken.output == f"{tenant.slug}: BROKEN\n  sequence 2: changed: its hash is another\n"
    unknown = CliRunner().invoke(cli, ["audit", "verify", "--tenant", f"t-{uuid4()}"])
    assert unknown.exit_code == 1
    assert "there is no organization with the slug" in unknown.output
