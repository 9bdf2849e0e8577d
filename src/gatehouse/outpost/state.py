"""The state that operators set and that survives the end of the process: kill switch, overrides, budget."""

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
from gatehouse.policy.catalog import Overrides

log = structlog.get_logger(__name__)

_FILE: Final = "state.json"


class BudgetSet(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a month. None is unlimited. After `expires_at` (Unix time) nothing may be spent until the budget is
    set again, so that an outpost that operators cannot reach stops at this time. `ended` is true after this time, even
    if the clock is set back."""

    usd: Decimal | None = None
    requests: int | None = None
    expires_at: float | None = None
    ended: bool = False


class StoredState(msgspec.Struct, frozen=True, kw_only=True):
    """The stored state. If `budget` is None, the budget of the settings applies. `stopped_at` is the Unix time at which
    the kill switch was engaged here. `stopped_by` contains the ids of peers whose kill switches are engaged."""

    stopped_at: float | None = None
    stopped_by: tuple[str, ...] = ()
    overrides: Overrides = Overrides()
    budget: BudgetSet | None = None


class LocalState:
    """The state in memory. A change is written to the disk before the response of the call. Raises `BadSettings` if the
    stored state cannot be read, because an engaged kill switch must stay engaged."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._write_lock = asyncio.Lock()
        #: A caller holds this lock while it stores a change and activates it, so that the next caller reads a state
        #: that is both stored and active.
        self.change_lock = asyncio.Lock()
        self.current = self._load()
        #: Returns whether the peer with this id has sent a message recently. If so, only a message of the peer releases
        #: the kill switch that it has engaged.
        self.present: Callable[[str], bool] = lambda _: False

    @property
    def stopped(self) -> bool:
        return self.current.stopped_at is not None or bool(self.current.stopped_by)

    @property
    def stopped_by(self) -> str | None:
        """Returns the id of a peer that has engaged the kill switch, the lowest id of several peers, or None."""
        return min(self.current.stopped_by, default=None)

    async def switch(self, *, active: bool) -> bool:
        """Engages or releases the kill switch. Returns whether its state has changed. An engaged switch applies
        immediately, even if the disk fails. A release also clears the kill switches of peers that no longer send
        messages. Raises `OSError`."""
        previous = self.current
        stopped_at = (previous.stopped_at or time.time()) if active else None
        if active:
            self.current = msgspec.structs.replace(previous, stopped_at=stopped_at)
            await self.change(stopped_at=stopped_at)
        else:
            await self.change(stopped_at=None, stopped_by=tuple(filter(self.present, previous.stopped_by)))
        return (previous.stopped_at is None) == active

    async def stop_for_peer(self, peer_id: str, *, stopped: bool) -> None:
        """Applies the state of a peer's own kill switch. An engaged switch applies immediately, even if the disk fails.
        Raises `OSError`."""
        if stopped == (peer_id in self.current.stopped_by):
            return
        other_peers = tuple(stopping_id for stopping_id in self.current.stopped_by if stopping_id != peer_id)
        stopped_by = (*other_peers, peer_id) if stopped else other_peers
        if stopped:
            self.current = msgspec.structs.replace(self.current, stopped_by=stopped_by)
        await self.change(stopped_by=stopped_by)
        log.warning("outpost.kill_switch_of_peer", peer=peer_id, active=stopped)

    async def change(self, **fields: object) -> None:
        """Stores new values of some fields and applies them. If it raises `OSError`, the fields do not change."""
        async with self._write_lock:
            await self._store(**fields)

    async def end_budget(self, budget: BudgetSet) -> None:
        """Marks the budget as ended, unless another budget has been set meanwhile. Raises `OSError`."""
        async with self._write_lock:
            if self.current.budget is budget:
                await self._store(budget=msgspec.structs.replace(budget, ended=True))

    async def _store(self, **fields: object) -> None:
        state = msgspec.structs.replace(self.current, **fields)
        await asyncio.to_thread(durable_files.write, self._path, msgspec.json.encode(state))
        # Do not assign `state`, because a kill switch may have been engaged during the write and must stay engaged.
        self.current = msgspec.structs.replace(self.current, **fields)

    def _load(self) -> StoredState:
        document = durable_files.read(self._path)
        if document is None:
            if self._path.exists():
                raise BadSettings(f"{self._path} cannot be read: it contains the state of the kill switch")
            return StoredState()
        try:
            return msgspec.json.decode(document, type=StoredState)
        except msgspec.DecodeError as error:
            raise BadSettings(
                f"{self._path} cannot be read ({error}); remove it to begin with an empty state"
            ) from None
