"""Stores a batch in one transaction as the service role: rows, audit chains, counts and journal positions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain
from typing import Any, Final
from uuid import UUID

import psycopg

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.journal import Batch, Position
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.keeper import samples
from gatehouse.platform.keeper.dlp import DlpRows
from gatehouse.platform.keeper.prepare import Prepared
from gatehouse.platform.records import arrays
from gatehouse.platform.records.audit import rows as audit
from gatehouse.platform.records.dlp_events import rows as dlp_events
from gatehouse.platform.records.usage import counts
from gatehouse.platform.records.usage import rows as usage

#: The partition of a month exists at least this long, counted from the first day of the month
#: (`gatehouse_drop_empty_month`).
_MIN_PARTITION_AGE: Final = timedelta(days=60)

#: The first version of PostgreSQL that has `transaction_timeout`, in libpq's numbering.
_TRANSACTION_TIMEOUT_VERSION: Final = 170000

_POSITIONS: Final = "SELECT writer_id, segment, position FROM journal_positions"
# Both statements match only the position that this keeper expects. An earlier keeper that lost its connection may have
# left a transaction that is not finished. The statements wait for its end. If it was committed, they match no row.
_UPDATE_POSITIONS: Final = (
    "UPDATE journal_positions target SET segment = moved.segment, position = moved.position, updated_at = now()"
    " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"
    " AS moved (writer_id, from_segment, from_position, segment, position)"
    " WHERE target.writer_id = moved.writer_id"
    " AND target.segment = moved.from_segment AND target.position = moved.from_position"
)
_INSERT_POSITIONS: Final = (
    "INSERT INTO journal_positions (writer_id, segment, position)"
    " SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) ON CONFLICT DO NOTHING"
)
_INSERT_OPEN_STREAMS: Final = (
    "INSERT INTO open_streams (id, writer_id, entry) SELECT * FROM unnest(%s::uuid[], %s::text[], %s::bytea[])"
)
# The rows of this and the following statements are sorted, so that concurrent keepers lock rows in the same order and
# cannot deadlock.
_COUNT_FINDINGS: Final = (
    "INSERT INTO dlp_counts AS target (tenant_id, day, entity_type, rule_name, action, severity, events)"
    " SELECT * FROM unnest(%s::uuid[], %s::date[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])"
    " AS more (tenant_id, day, entity_type, rule_name, action, severity, events)"
    " ORDER BY tenant_id, day, entity_type, rule_name, action, severity"
    " ON CONFLICT (tenant_id, day, entity_type, rule_name, action, severity)"
    " DO UPDATE SET events = target.events + excluded.events"
)
_COUNT_REQUESTS: Final = (
    "INSERT INTO dlp_request_counts AS target (tenant_id, day, entity_types, requests)"
    " SELECT tenant_id, day, entity_types::text[], requests"
    " FROM unnest(%s::uuid[], %s::date[], %s::text[], %s::bigint[])"
    " AS more (tenant_id, day, entity_types, requests) ORDER BY tenant_id, day, entity_types"
    " ON CONFLICT (tenant_id, day, entity_types) DO UPDATE SET requests = target.requests + excluded.requests"
)
_INSERT_TRIGGERS: Final = (
    "INSERT INTO outbox (id, tenant_id, event_type, payload)"
    " SELECT id, tenant_id, 'dlp_trigger', payload FROM unnest(%s::uuid[], %s::uuid[], %s::jsonb[])"
    " AS triggers (id, tenant_id, payload)"
)
_ADD_SPENDING: Final = (
    "INSERT INTO budget_leases AS target (budget_id, period_start, writer_id, tenant_id, recorded_usd,"
    " recorded_requests, recorded_tokens) SELECT budget_id, to_timestamp(began), writer_id, tenant_id, usd, requests,"
    " tokens FROM unnest(%s::uuid[], %s::bigint[], %s::uuid[], %s::uuid[], %s::numeric[], %s::bigint[], %s::bigint[])"
    " AS more (budget_id, began, writer_id, tenant_id, usd, requests, tokens)"
    " ON CONFLICT (budget_id, period_start, writer_id) DO UPDATE SET"
    " recorded_usd = target.recorded_usd + excluded.recorded_usd,"
    " recorded_requests = target.recorded_requests + excluded.recorded_requests,"
    " recorded_tokens = target.recorded_tokens + excluded.recorded_tokens"
)
_ADD_MODELS: Final = (
    "INSERT INTO model_days AS target (tenant_id, provider, model_id, day, requests, errors, blocked, flagged,"
    " input_tokens, output_tokens, cost_usd, first_at, last_at)"
    " SELECT * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::date[], %s::bigint[], %s::bigint[], %s::bigint[],"
    " %s::bigint[], %s::bigint[], %s::bigint[], %s::numeric[], %s::timestamptz[], %s::timestamptz[])"
    " ON CONFLICT (tenant_id, provider, model_id, day) DO UPDATE SET requests = target.requests + excluded.requests,"
    " errors = target.errors + excluded.errors, blocked = target.blocked + excluded.blocked,"
    " flagged = target.flagged + excluded.flagged, input_tokens = target.input_tokens + excluded.input_tokens,"
    " output_tokens = target.output_tokens + excluded.output_tokens, cost_usd = target.cost_usd + excluded.cost_usd,"
    " first_at = least(target.first_at, excluded.first_at), last_at = greatest(target.last_at, excluded.last_at)"
)
_ADD_LATENCY: Final = (
    "CASE WHEN cardinality(target.latency) < 200 THEN target.latency || excluded.latency ELSE ARRAY("
    "SELECT (k >> 32 << 32) + sum(k & 4294967295)::bigint FROM unnest(target.latency || excluded.latency) k"
    " GROUP BY k >> 32) END"
)
# The rows of `_ADD_SPENDING`, `_ADD_MODELS` and the next two statements are sorted before they are sent.
_ADD_MINUTES: Final = (
    "INSERT INTO usage_minutes AS target"  # noqa: S608
    " (tenant_id, minute, requests, errors, blocked, dlp_triggers, cost_usd, latency)"
    " SELECT tenant_id, to_timestamp(minute), requests, errors, blocked, dlp_triggers, cost_usd, latency::bigint[]"
    " FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::numeric[],"
    " %s::text[]) AS more (tenant_id, minute, requests, errors, blocked, dlp_triggers, cost_usd, latency)"
    " ON CONFLICT (tenant_id, minute) DO UPDATE SET"
    " requests = target.requests + excluded.requests, errors = target.errors + excluded.errors,"
    " blocked = target.blocked + excluded.blocked, dlp_triggers = target.dlp_triggers + excluded.dlp_triggers,"
    f" cost_usd = target.cost_usd + excluded.cost_usd, latency = {_ADD_LATENCY}"
)
_ADD_HOURS: Final = _ADD_MINUTES.replace("minute", "hour")
_ADD_DAYS: Final = (
    "INSERT INTO routing_days AS target (tenant_id, day, provider, model_id, routing_policy_id, group_id, requests,"
    " cost_usd, fallbacks, cost_cap_blocks, cache_hits, input_tokens, output_tokens)"
    " SELECT * FROM unnest(%s::uuid[], %s::date[], %s::text[], %s::text[], %s::text[], %s::uuid[], %s::bigint[],"
    " %s::numeric[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"
    " AS more (tenant_id, day, provider, model_id, routing_policy_id, group_id, requests, cost_usd, fallbacks,"
    " cost_cap_blocks, cache_hits, input_tokens, output_tokens)"
    " ORDER BY tenant_id, day, provider, model_id, routing_policy_id, group_id"
    " ON CONFLICT (tenant_id, day, provider, model_id, routing_policy_id, group_id) DO UPDATE SET"
    " requests = target.requests + excluded.requests, cost_usd = target.cost_usd + excluded.cost_usd,"
    " fallbacks = target.fallbacks + excluded.fallbacks,"
    " cost_cap_blocks = target.cost_cap_blocks + excluded.cost_cap_blocks,"
    " cache_hits = target.cache_hits + excluded.cache_hits, input_tokens = target.input_tokens + excluded.input_tokens,"
    " output_tokens = target.output_tokens + excluded.output_tokens"
)
_ADD_ALIASES: Final = (
    "INSERT INTO alias_hours AS target (tenant_id, hour, model_alias, provider, model_id, shadow, routing_policy_id,"
    " group_id, requests, errors, blocked, dlp_triggers, cost_usd)"
    " SELECT tenant_id, to_timestamp(hour), model_alias, provider, model_id, shadow, routing_policy_id, group_id,"
    " requests, errors, blocked, dlp_triggers, cost_usd FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::text[],"
    " %s::text[], %s::boolean[], %s::text[], %s::uuid[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],"
    " %s::numeric[]) AS more (tenant_id, hour, model_alias, provider, model_id, shadow, routing_policy_id, group_id,"
    " requests, errors, blocked, dlp_triggers, cost_usd)"
    " ORDER BY tenant_id, hour, model_alias, provider, model_id, shadow, routing_policy_id, group_id"
    " ON CONFLICT (tenant_id, hour, model_alias, provider, model_id, shadow, routing_policy_id, group_id)"
    " DO UPDATE SET requests = target.requests + excluded.requests, errors = target.errors + excluded.errors,"
    " blocked = target.blocked + excluded.blocked, dlp_triggers = target.dlp_triggers + excluded.dlp_triggers,"
    " cost_usd = target.cost_usd + excluded.cost_usd"
)
# A finished writer spends no more, so its grants are reduced to the recorded spending.
_CLOSE_LEASES: Final = (
    "UPDATE budget_leases SET granted_nano_usd = ceil(recorded_usd * 1000000000), granted_requests = recorded_requests,"
    " granted_tokens = recorded_tokens WHERE writer_id = ANY(%s::uuid[])"
)
_LOCK_HEADS: Final = (
    "SELECT tenant_id::text, sequence, hash FROM audit_heads WHERE tenant_id = ANY(%s::uuid[])"
    " ORDER BY audit_heads.tenant_id FOR UPDATE"
)
_UPDATE_HEADS: Final = (
    "UPDATE audit_heads target SET sequence = moved.sequence, hash = moved.hash"
    " FROM unnest(%s::uuid[], %s::bigint[], %s::bytea[]) AS moved (tenant_id, sequence, hash)"
    " WHERE target.tenant_id = moved.tenant_id"
)
_SELECT_HEADS: Final = "SELECT tenant_id::text FROM audit_heads WHERE tenant_id = ANY(%s::uuid[])"
_INSERT_HEADS: Final = (
    "INSERT INTO audit_heads (tenant_id) SELECT id FROM tenants WHERE id = ANY(%s::uuid[]) ORDER BY id"
    " ON CONFLICT DO NOTHING"
)


class Overtaken(Exception):
    """The positions in the database are ahead of this keeper's positions. Nothing was stored. The keeper must resume
    from the positions in the database."""


class BadRecord(Exception):
    """PostgreSQL permanently refuses a record of the batch. Nothing was stored."""


class Store:
    """An autocommit connection to the database, with a cache of known partitions and tenants. Methods raise
    `psycopg.Error`."""

    def __init__(self, url: str) -> None:
        self._connection = roles.connect(
            url, SERVICE_ROLE, autocommit=True, connect_timeout=5, application_name="gatehouse keeper"
        )
        # A keeper that is suspended or cut off in the middle of a batch must not keep the audit chains locked, because
        # administration waits for them. These timeouts would not end a COPY (see `arrays`).
        self._connection.execute("SET idle_in_transaction_session_timeout = '2s'")
        self._connection.execute("SET statement_timeout = '15s'")
        # A session is treated as idle until the first message of a statement has arrived completely. While it waits for
        # the other messages of the statement, it is treated as busy. All statements are prepared, so that the long
        # message, the one with the values, is the first one. `transaction_timeout` limits the wait for the other
        # messages.
        self._connection.prepare_threshold = 0
        if self._connection.info.server_version >= _TRANSACTION_TIMEOUT_VERSION:
            self._connection.execute("SET transaction_timeout = '20s'")
        self._months: set[str] = set()
        self._tenants: set[str] = set()

    def close(self) -> None:
        self._connection.close()

    def positions(self) -> dict[UUID, Position]:
        """Return the stored journal position of each writer."""
        rows = self._connection.execute(_POSITIONS)
        return {UUID(writer_id): Position(segment, position) for writer_id, segment, position in rows}

    def left_open(self, writers: Iterable[UUID]) -> dict[str, bytes]:
        """Return the journal entries of the open streams of these writers. The keys are the ids of the streams."""
        ids = [str(writer) for writer in writers]
        if not ids:
            return {}
        rows = self._connection.execute("SELECT id::text, entry FROM open_streams WHERE writer_id = ANY(%s)", [ids])
        return dict(rows)

    def missing_tenants(self, tenants: Iterable[str]) -> set[str]:
        """Return those of the tenants that are not in the database. For the other tenants, creates the head of the
        audit chain if it is missing."""
        unknown = set(tenants) - self._tenants
        if unknown:
            self._connection.execute(_INSERT_HEADS, [list(unknown)])
            rows = self._connection.execute(_SELECT_HEADS, [list(unknown)])
            self._tenants.update(tenant_id for (tenant_id,) in rows)
        return unknown - self._tenants

    def ensure_months(self, months: Iterable[str]) -> None:
        """Create missing partitions. Call this before the transaction: the creation locks the table, and administration
        would wait for the lock."""
        for month in months:
            if month not in self._months:
                first = date(int(month[:-2]), int(month[-2:]), 1)
                self._connection.execute("SELECT gatehouse_ensure_partitions(%s, 1)", [first])
                # Partitions of old months may be dropped, so these months are not cached.
                if utc_now().date() - first < _MIN_PARTITION_AGE:
                    self._months.add(month)

    def write(
        self, batch: Batch, expected: Mapping[UUID, Position], prepared: Prepared, *, before_commit: Callable[[], None]
    ) -> None:
        """Store a batch in one transaction. `expected` are the positions that the database should have. `before_commit`
        is called when only the commit is left. Raises `Overtaken` and `BadRecord`."""
        # The columns are computed before the transaction, so that it holds its locks for a shorter time.
        records = {month: arrays.columns(rows) for month, rows in prepared.usage.items()}
        events = {month: _unchained_columns(by_tenant) for month, by_tenant in prepared.events.items()}
        try:
            with self._connection.transaction():
                self._move(batch.positions, expected)
                self._streams(prepared)
                # The months are sorted because triggers add up the inserted rows, and concurrent keepers must lock the
                # sums in the same order.
                for month, columns in sorted(records.items()):
                    self._insert(f"usage_records_{month}", usage.COLUMNS, columns)
                self._count(prepared)
                self._spend(prepared)
                self._models(prepared)
                self._dlp(prepared.dlp)
                if prepared.samples:
                    self._connection.execute(samples.INSERT, _columns(prepared.samples))
                # The audit chains come last, because administration waits for their locks.
                self._chain(prepared, events)
                before_commit()
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise BadRecord(str(error)) from error

    def forget_writers(self, writers: list[UUID]) -> None:
        """Delete the positions of writers, and close their leases. Call this only after the files of the writers are
        deleted, because the journal of a writer without a position is read from its start."""
        if writers:
            ids = [str(writer) for writer in writers]
            with self._connection.transaction():
                self._connection.execute(_CLOSE_LEASES, [ids])
                self._connection.execute("DELETE FROM journal_positions WHERE writer_id = ANY(%s)", [ids])

    def _move(self, positions: Mapping[UUID, Position], expected: Mapping[UUID, Position]) -> None:
        """Advance the positions. Raises `Overtaken` if the positions in the database are not the `expected` ones."""
        moved = [
            (str(writer), *expected[writer], *position) for writer, position in positions.items() if writer in expected
        ]
        new = [(str(writer), *position) for writer, position in positions.items() if writer not in expected]
        row_count = 0
        if moved:
            row_count += self._connection.execute(_UPDATE_POSITIONS, _columns(moved)).rowcount
        if new:
            row_count += self._connection.execute(_INSERT_POSITIONS, _columns(new)).rowcount
        if row_count != len(positions):
            raise Overtaken

    def _streams(self, prepared: Prepared) -> None:
        if prepared.ended:
            self._connection.execute("DELETE FROM open_streams WHERE id = ANY(%s::uuid[])", [prepared.ended])
        if prepared.interrupted:
            deleted = self._connection.execute(
                "DELETE FROM open_streams WHERE id = ANY(%s::uuid[])", [prepared.interrupted]
            )
            if deleted.rowcount != len(prepared.interrupted):
                raise Overtaken
        if prepared.opened:
            rows = [(stream, str(writer), entry) for stream, (writer, entry) in prepared.opened.items()]
            self._connection.execute(_INSERT_OPEN_STREAMS, _columns(rows))

    def _count(self, prepared: Prepared) -> None:
        if prepared.counts:
            columns = arrays.columns(counts.rows(prepared.counts))
            self._insert("usage_count_deltas_all", counts.COLUMNS, columns)
            self._connection.execute(_ADD_DAYS, _columns(prepared.days.rows()))
            self._connection.execute(_ADD_MINUTES, _columns(prepared.minutes.minutes()))
            self._connection.execute(_ADD_HOURS, _columns(prepared.minutes.hours()))
        if rows := prepared.aliases.rows():
            self._connection.execute(_ADD_ALIASES, _columns(rows))

    def _spend(self, prepared: Prepared) -> None:
        if rows := prepared.spent.rows():
            self._connection.execute(_ADD_SPENDING, _columns(rows))

    def _models(self, prepared: Prepared) -> None:
        if rows := prepared.models.rows():
            self._connection.execute(_ADD_MODELS, _columns(rows))

    def _dlp(self, rows: DlpRows) -> None:
        for month, events in sorted(rows.events.items()):
            self._insert(f"dlp_events_{month}", dlp_events.COLUMNS, arrays.columns(events))
        if rows.triggers:
            self._connection.execute(_INSERT_TRIGGERS, _columns(rows.triggers))
        if rows.hits:
            self._connection.execute(_COUNT_FINDINGS, _columns([(*key, count) for key, count in rows.hits.items()]))
        if rows.requests:
            self._connection.execute(_COUNT_REQUESTS, _columns([(*key, count) for key, count in rows.requests.items()]))

    def _chain(self, prepared: Prepared, events: Mapping[str, list[str]]) -> None:
        """Append the events to the audit chains. `events` are the results of `_unchained_columns`, by month."""
        if not events:
            return
        tenants = {tenant_id for by_tenant in prepared.events.values() for tenant_id in by_tenant}
        heads = {row[0]: audit.ChainHead(*row) for row in self._connection.execute(_LOCK_HEADS, [list(tenants)])}
        for month, columns in sorted(events.items()):
            links = arrays.columns(
                chain.from_iterable(
                    audit.link_rows(heads[tenant_id], tenant_events)
                    for tenant_id, tenant_events in prepared.events[month].items()
                )
            )
            self._insert(f"audit_events_{month}", audit.COLUMNS, columns + links)
        moved = [(head.tenant_id, head.sequence, head.hash) for head in heads.values()]
        self._connection.execute(_UPDATE_HEADS, _columns(moved))

    def _insert(self, table: str, columns: arrays.Columns, values: list[str]) -> None:
        if values:
            self._connection.execute(columns.insert_into(table), values)


def _unchained_columns(by_tenant: Mapping[str, Iterable[audit.Digested]]) -> list[str]:
    """Return those columns of a month's events that do not depend on the events' position in the chain."""
    return arrays.columns(
        chain.from_iterable(audit.unchained_rows(tenant_id, events) for tenant_id, events in by_tenant.items())
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
