"""Which of an outpost's records are stored: those that this platform could have written itself. An outpost is believed
about its own organization's requests, and about nothing else."""

import re
from collections.abc import Iterator
from time import time
from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.engine import notices, outcome
from gatehouse.engine.attribution import are_tags, bounded_end_user
from gatehouse.engine.notices import Lost, Notice, Operated
from gatehouse.engine.outcome import DlpEvent, Entry, Outcome, Scanned
from gatehouse.foundation.identity import CallerKind, TenantId
from gatehouse.foundation.journal import MAX_RECORD_BYTES

#: Seconds. An outpost comes back after weeks; what is older, or to come, is from a clock that is wrong.
_OLDEST: Final = 366 * 86_400
_AHEAD: Final = 86_400
_BAD_TIME: Final = "timestamp: neither of the last year nor of now"
_OUTCOMES: Final = frozenset({"success", "error", "refused", "cancelled", "interrupted"})
_ACTORS: Final = frozenset(each.value for each in CallerKind)
_CACHE: Final = frozenset({None, "hit", "miss"})
#: What is taken for a word of the gateway's own.
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch
_MOST_SMALL: Final = 2**31 - 1
_MOST_MS: Final = 10.0**9
_MOST_LOST: Final = 2**53


class Unfit(Exception):
    """Why a record is not stored."""


def fit(entry: Any, tenant_id: TenantId, budgets: frozenset[UUID]) -> bytes:
    """The journal entry as it is stored: `tenant_id`'s, whatever it says, and counted for `budgets` alone.

    `entry` is as JSON has it. Raises `Unfit`."""
    try:
        # As ids and numbers: text of a stranger's goes nowhere unread.
        read = outcome.decode(msgspec.json.encode(entry))
        fault = next(_faults(read), None)
        if fault is not None:
            raise Unfit(fault)
        line = outcome.encode(_own(read, tenant_id, budgets))
    except msgspec.MsgspecError as error:
        raise Unfit(f"not an entry: {error}") from None
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise Unfit("not an entry") from None
    if len(line) > MAX_RECORD_BYTES:
        raise Unfit(f"longer than {MAX_RECORD_BYTES} bytes")
    return line


def notice(entry: Any) -> Notice | None:
    """None for a record. Raises `Unfit`."""
    try:
        read = notices.read(entry)
    except msgspec.ValidationError as error:
        raise Unfit(f"not a notice: {error}") from None
    if isinstance(read, Lost) and not all(0 <= count < _MOST_LOST for count in (read.records or 0, read.bytes or 0)):
        raise Unfit("records, bytes: out of range")
    if isinstance(read, Operated) and not _is_plausible(read.timestamp):
        raise Unfit(_BAD_TIME)
    return read


def _is_plausible(timestamp: float) -> bool:
    return -_OLDEST <= timestamp - time() <= _AHEAD


def _own(entry: Entry[UUID], tenant_id: TenantId, budgets: frozenset[UUID]) -> Entry[UUID]:
    if isinstance(entry, Outcome):
        counted = tuple(each for each in entry.budgets if each[0] in budgets)
        return msgspec.structs.replace(entry, tenant_id=tenant_id, budgets=counted)
    return msgspec.structs.replace(entry, tenant_id=tenant_id)


def _faults(entry: Entry[UUID]) -> Iterator[str]:
    if not _is_plausible(entry.timestamp):
        yield _BAD_TIME
    if entry.actor_type not in _ACTORS:
        yield "actor_type: unknown"
    if isinstance(entry, Outcome):
        yield from _faults_of_outcome(entry)
    for event in entry.dlp_events:
        if not all(_WORD(word) for word in _words(event)) or not 0 <= event.match_count <= _MOST_SMALL:
            yield "dlp_events: not as they are written"
    if isinstance(entry, Scanned):
        return
    if len(entry.rule_events) > 1_000:
        yield "rule_events: too many"
    if not are_tags(entry.tags):
        yield "tags: not as they are written"
    if entry.end_user is not None and bounded_end_user(entry.end_user) != entry.end_user:
        yield "end_user: not as it is written"


def _faults_of_outcome(entry: Outcome[UUID]) -> Iterator[str]:
    if entry.outcome not in _OUTCOMES:
        yield "outcome: unknown"
    if entry.cache not in _CACHE:
        yield "cache: unknown"
    if not 0 <= entry.fallbacks <= _MOST_SMALL or not 0 <= entry.status <= 999:
        yield "status, fallbacks: out of range"
    times = (entry.latency_ms, entry.time_to_first_token_ms or 0.0, entry.provider_latency_ms or 0.0)
    if not all(0.0 <= each <= _MOST_MS for each in times):
        yield "latency_ms, time_to_first_token_ms, provider_latency_ms: out of range"


def _words(event: DlpEvent) -> tuple[str, ...]:
    own = (event.direction, event.status, event.action, event.severity, event.source)
    return own if event.detector_type is None else (*own, event.detector_type)
