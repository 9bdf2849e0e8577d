"""Validates the records of outposts. A record is stored only if this platform could have written it. An outpost is
trusted only for requests of its own organization."""

import re
from collections.abc import Iterator
from time import time
from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.engine.mcp.definitions import is_tool_name
from gatehouse.engine.records import outcome, upload_notices
from gatehouse.engine.records.attribution import are_tags, bounded_end_user
from gatehouse.engine.records.outcome import (
    DlpEvent,
    Entry,
    Opened,
    Outcome,
    Scanned,
    ToolCalled,
)
from gatehouse.engine.records.upload_notices import Lost, Notice, Operated
from gatehouse.foundation.identity import CallerKind, TenantId
from gatehouse.foundation.journal import MAX_RECORD_BYTES
from gatehouse.policy.aliases import NAME

#: Accepted age of a record. An outpost may reconnect after weeks. A time that is older, or that is later than
#: `_MAX_AHEAD_SECONDS` from now, comes from a wrong clock.
_MAX_AGE_SECONDS: Final = 366 * 86_400
_MAX_AHEAD_SECONDS: Final = 86_400
_BAD_TIME: Final = "timestamp: must be within the last year and not in the future"
_TOOL_OUTCOMES: Final = frozenset({"success", "error", "refused", "cancelled"})
_OUTCOMES: Final = _TOOL_OUTCOMES | {"interrupted"}
_ACTOR_TYPES: Final = frozenset(kind.value for kind in CallerKind)
_CACHE_RESULTS: Final = frozenset({None, "hit", "miss"})
#: Matches identifiers that the gateway writes.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch
_is_server_name: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}").fullmatch
_is_digest: Final = re.compile(r"sha256:[0-9a-f]{64}").fullmatch
_ALIAS_NAME: Final = re.compile(NAME).fullmatch
_MAX_INTEGER: Final = 2**31 - 1
_MAX_MILLISECONDS: Final = 10.0**9
_MAX_ATTEMPTS: Final = 1_000
_MAX_LOST: Final = 2**53


class InvalidEntry(Exception):
    """A record that cannot be stored. The message is the reason."""


def validated_line(entry: Any, tenant_id: TenantId, budgets: frozenset[UUID]) -> bytes:
    """Return the journal entry as a line to store. The line belongs to `tenant_id`, whatever the entry contains, and
    counts only for `budgets`. `entry` is decoded JSON. Raises `InvalidEntry`."""
    try:
        # The entry is decoded into ids and numbers, so that no unchecked text of the outpost is stored.
        record = outcome.decode(msgspec.json.encode(entry))
        fault = next(_faults(record), None)
        if fault is not None:
            raise InvalidEntry(fault)
        line = outcome.encode(_restricted(record, tenant_id, budgets))
    except msgspec.MsgspecError as error:
        raise InvalidEntry(f"not a valid entry: {error}") from None
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidEntry("not a valid entry") from None
    if len(line) > MAX_RECORD_BYTES:
        raise InvalidEntry(f"longer than {MAX_RECORD_BYTES} bytes")
    return line


def notice(entry: Any) -> Notice | None:
    """Return the entry as a notice, or None if it is a record. Raises `InvalidEntry`."""
    try:
        record = upload_notices.read(entry)
    except msgspec.ValidationError as error:
        raise InvalidEntry(f"not a notice: {error}") from None
    if isinstance(record, Lost) and not all(
        0 <= count < _MAX_LOST for count in (record.records or 0, record.bytes or 0)
    ):
        raise InvalidEntry("records, bytes: out of range")
    if isinstance(record, Operated) and not _is_plausible(record.timestamp):
        raise InvalidEntry(_BAD_TIME)
    return record


def _is_plausible(timestamp: float) -> bool:
    return -_MAX_AGE_SECONDS <= timestamp - time() <= _MAX_AHEAD_SECONDS


def _restricted(entry: Entry[UUID], tenant_id: TenantId, budgets: frozenset[UUID]) -> Entry[UUID]:
    if isinstance(entry, Outcome | ToolCalled):
        counted = tuple(budget for budget in entry.budgets if budget[0] in budgets)
        return msgspec.structs.replace(entry, tenant_id=tenant_id, budgets=counted)
    return msgspec.structs.replace(entry, tenant_id=tenant_id)


def _faults(entry: Entry[UUID]) -> Iterator[str]:
    if not _is_plausible(entry.timestamp):
        yield _BAD_TIME
    if entry.actor_type not in _ACTOR_TYPES:
        yield "actor_type: unknown"
    if isinstance(entry, Outcome):
        yield from _faults_of_outcome(entry)
    for event in entry.dlp_events:
        if not all(_IDENTIFIER(value) for value in _identifiers(event)) or not 0 <= event.match_count <= _MAX_INTEGER:
            yield "dlp_events: not in the form that a gateway writes"
    if isinstance(entry, Scanned):
        return
    if isinstance(entry, ToolCalled):
        yield from _faults_of_tool_call(entry)
    else:
        yield from _faults_of_attribution(entry)
    if len(entry.rule_events) > 1_000:
        yield "rule_events: too many"


def _faults_of_tool_call(entry: ToolCalled[UUID]) -> Iterator[str]:
    if entry.outcome not in _TOOL_OUTCOMES:
        yield "outcome: unknown"
    if not _is_server_name(entry.server) or not (entry.tool is None or is_tool_name(entry.tool)):
        yield "server, tool: not in the form that a gateway writes"
    if not all(value is None or _is_digest(value) for value in (entry.definition_hash, entry.arguments_digest)):
        yield "definition_hash, arguments_digest: not in the form that a gateway writes"
    if not 0 <= entry.status <= 999 or not 0 <= (entry.result_bytes or 0) <= _MAX_INTEGER:
        yield "status, result_bytes: out of range"
    if not all(0.0 <= milliseconds <= _MAX_MILLISECONDS for milliseconds in (entry.latency_ms, entry.upstream_ms or 0)):
        yield "latency_ms, upstream_ms: out of range"


def _faults_of_attribution(entry: Opened[UUID] | Outcome[UUID]) -> Iterator[str]:
    if not are_tags(entry.tags):
        yield "tags: not in the form that a gateway writes"
    if entry.end_user is not None and bounded_end_user(entry.end_user) != entry.end_user:
        yield "end_user: not in the form that a gateway writes"
    if entry.model_alias is not None and not _ALIAS_NAME(entry.model_alias):
        yield "model_alias: not in the form that a gateway writes"


def _faults_of_outcome(entry: Outcome[UUID]) -> Iterator[str]:
    if entry.outcome not in _OUTCOMES:
        yield "outcome: unknown"
    if entry.cache not in _CACHE_RESULTS:
        yield "cache: unknown"
    if not 0 <= entry.fallbacks <= _MAX_INTEGER or not 0 <= entry.status <= 999:
        yield "status, fallbacks: out of range"
    times = (
        entry.latency_ms,
        entry.time_to_first_token_ms or 0.0,
        entry.provider_latency_ms or 0.0,
        entry.attempt_ms or 0.0,
        *(attempt.duration_ms or 0.0 for attempt in entry.attempts),
    )
    if not all(0.0 <= milliseconds <= _MAX_MILLISECONDS for milliseconds in times):
        yield "latency_ms, time_to_first_token_ms, provider_latency_ms, attempt_ms, attempts: out of range"
    if len(entry.attempts) > _MAX_ATTEMPTS or any(
        "\0" in f"{attempt.provider}{attempt.model_id}{attempt.reason}" or not _is_label(attempt.credential)
        for attempt in entry.attempts
    ):
        yield "attempts: not in the form that a gateway writes"
    if not _is_label(entry.credential):
        yield "credential: not in the form that a gateway writes"


def _is_label(credential: str | None) -> bool:
    return credential is None or _IDENTIFIER(credential) is not None


def _identifiers(event: DlpEvent) -> tuple[str, ...]:
    values = (event.direction, event.status, event.action, event.severity, event.source)
    return values if event.detector_type is None else (*values, event.detector_type)
