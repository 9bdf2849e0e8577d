"""`gatehouse audit verify` detects changes of the chain by the owner of the database."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner
from tests.platform.records.test_audit_events import make_events
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.cli.main import cli
from gatehouse.platform.changes.chain.links import AuditEvent, link
from gatehouse.platform.records.audit.verify import Break


@pytest.fixture
async def chain(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> Callable[[str], list[int]]:
    """Create eight events of administration and the gateway, run a statement on them, and return where the chain
    breaks."""
    await make_events(tenant, 3)
    await journal.append(*(outcome(tenant.id, user_id=tenant.user.id, ip=f"203.0.113.{item}") for item in range(3)))
    await journal.drain()
    await make_events(tenant, 2)

    def tampered(statement: str) -> list[int]:
        assert platform.breaks(tenant) == []
        platform.sql(statement.replace("THE_CHAIN", f"tenant_id = '{tenant.id}'"))
        return [gap.sequence for gap in platform.breaks(tenant)]

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
async def test_a_changed_event_is_named(chain: Callable[[str], list[int]], change: str) -> None:
    assert chain(f"UPDATE audit_events SET {change} WHERE THE_CHAIN AND sequence = 5") == [5]


async def test_a_changed_hash_breaks_the_event_and_the_one_after_it(chain: Callable[[str], list[int]]) -> None:
    assert chain("UPDATE audit_events SET hash = sha256('x') WHERE THE_CHAIN AND sequence = 5") == [5, 6]


class Forger:
    """Rewrites events of a chain together with their hashes, as the owner of the database could."""

    def __init__(self, platform: RunningPlatform, tenant: Tenant) -> None:
        self._platform, self._tenant = platform, tenant

    def rewrite(self, sequence: int, *, reason: str | None = None, prev_hash: bytes | None = None) -> bytes:
        """Changes the event and gives it the hash that fits its new content. Returns that hash."""
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
    assert platform.breaks(tenant) == [Break(6, "does not follow the event before it")]


@pytest.mark.usefixtures("chain")
async def test_the_last_event_changed_with_its_hash_is_named_by_the_head(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    Forger(platform, tenant).rewrite(8, reason="forged")
    assert platform.breaks(tenant) == [Break(8, "not the end that the chain's head names (8)")]


@pytest.mark.usefixtures("chain")
async def test_a_chain_rewritten_to_its_end_is_named_by_the_head(platform: RunningPlatform, tenant: Tenant) -> None:
    forger = Forger(platform, tenant)
    previous = forger.rewrite(5, reason="forged")
    for sequence in (6, 7, 8):
        previous = forger.rewrite(sequence, prev_hash=previous)
    assert [broken.sequence for broken in platform.breaks(tenant)] == [8]


async def test_a_removed_event_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence = 4") == [4]


async def test_a_removed_beginning_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence <= 2") == [1]


async def test_a_removed_end_is_named(chain: Callable[[str], list[int]]) -> None:
    assert chain("DELETE FROM audit_events WHERE THE_CHAIN AND sequence >= 7") == [7]


async def test_two_events_that_changed_places_are_named(chain: Callable[[str], list[int]]) -> None:
    result = chain("UPDATE audit_events SET sequence = 9 - sequence WHERE THE_CHAIN AND sequence IN (4, 5)")
    assert {4, 5} <= set(result)


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
    """Its personal fields and their salt are removed. The hash covers the other fields and the digest, which stays."""
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
