"""Settings of operators that outlive the process: kill switch, overrides, budget."""

import asyncio
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import durable_files
from gatehouse.policy.overlay import Overrides

log = structlog.get_logger(__name__)

_FILE: Final = "state.json"


class BudgetSet(msgspec.Struct, frozen=True, kw_only=True):
    """The month's limits; None is unlimited. After `expires_at` (Unix time) nothing may be spent until the budget is
    set again, so that an unreachable outpost stops in the end. `ended` records that the time has come, even if the
    clock is set back."""

    usd: Decimal | None = None
    requests: int | None = None
    expires_at: float | None = None
    ended: bool = False


class StoredState(msgspec.Struct, frozen=True, kw_only=True):
    """`budget` None: the settings apply. `stopped_at`: Unix time at which the kill switch was engaged; `stopped_by`:
    ids of the peers whose kill switches are engaged."""

    stopped_at: float | None = None
    stopped_by: tuple[str, ...] = ()
    overrides: Overrides = Overrides()
    budget: BudgetSet | None = None


class LocalState:
    """The state in memory, written to disk before a call that changes it is answered. Raises `BadSettings` if the
    stored state cannot be read: an engaged kill switch must not be forgotten."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._write_lock = asyncio.Lock()
        #: Held by a caller that stores a change and puts it in force, so that the next one sees both.
        self.change_lock = asyncio.Lock()
        self.current = self._load()
        #: returns whether a peer, by its id, sent a message recently: then only the peer releases what it engaged.
        self.present: Callable[[str], bool] = lambda _: False

    @property
    def stopped(self) -> bool:
        return self.current.stopped_at is not None or bool(self.current.stopped_by)

    @property
    def stopped_by(self) -> str | None:
        """Returns the id of a peer that engaged the kill switch, the first of several, or None."""
        return min(self.current.stopped_by, default=None)

    async def switch(self, *, active: bool) -> bool:
        """Engages or releases the kill switch; returns whether that changed it. Engaging applies at once, even if the
        disk fails. Releasing also clears the kill switches of peers that no longer send messages."""
        previous = self.current
        stopped_at = (previous.stopped_at or time.time()) if active else None
        if active:
            self.current = msgspec.structs.replace(previous, stopped_at=stopped_at)
            await self.change(stopped_at=stopped_at)
        else:
            await self.change(stopped_at=None, stopped_by=tuple(filter(self.present, previous.stopped_by)))
        return (previous.stopped_at is None) == active

    async def stop_for_peer(self, peer_id: str, *, stopped: bool) -> None:
        """Applies a peer's report on its own kill switch. An engaged one applies at once. Raises `OSError`."""
        if stopped == (peer_id in self.current.stopped_by):
            return
        others = tuple(other_id for other_id in self.current.stopped_by if other_id != peer_id)
        stopped_by = (*others, peer_id) if stopped else others
        if stopped:
            self.current = msgspec.structs.replace(self.current, stopped_by=stopped_by)
        await self.change(stopped_by=stopped_by)
        log.warning("outpost.kill_switch_of_peer", peer=peer_id, active=stopped)

    async def change(self, **fields: object) -> None:
        """Raises `OSError`; nothing is changed then, except that a kill switch stays engaged."""
        async with self._write_lock:
            await self._store(**fields)

    async def end_budget(self, budget: BudgetSet) -> None:
        """Marks the budget as ended, unless another one was set meanwhile. Raises `OSError`."""
        async with self._write_lock:
            if self.current.budget is budget:
                await self._store(budget=msgspec.structs.replace(budget, ended=True))

    async def _store(self, **fields: object) -> None:
        state = msgspec.structs.replace(self.current, **fields)
        await asyncio.to_thread(durable_files.write, self._path, msgspec.json.encode(state))
        # Not `state`: a kill switch that was engaged meanwhile stays engaged.
        self.current = msgspec.structs.replace(self.current, **fields)

    def _load(self) -> StoredState:
        document = durable_files.read(self._path)
        if document is None:
            if self._path.exists():
                raise BadSettings(f"{self._path} cannot be read: it says whether the kill switch is engaged")
            return StoredState()
        try:
            return msgspec.json.decode(document, type=StoredState)
        except msgspec.DecodeError as error:
            raise BadSettings(f"{self._path} cannot be read ({error}); remove it to begin anew") from None
