"""What operators have said to this outpost, which outlives the process: kill switch, overrides, budget."""

import asyncio
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import kept
from gatehouse.policy.overlay import Overrides

log = structlog.get_logger(__name__)

_FILE: Final = "state.json"


class BudgetSet(msgspec.Struct, frozen=True, kw_only=True):
    """The month's limits; None: without end. After `expires_at` (Unix time) nothing may be spent until it is set anew:
    so an outpost that nobody reaches cannot go on for ever. `ended`: that has come, whatever the clock says since."""

    usd: Decimal | None = None
    requests: int | None = None
    expires_at: float | None = None
    ended: bool = False


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """`budget` None: what the settings say. `stopped_at`: when the kill switch was engaged, Unix time; `stopped_by`:
    ids of the peers that have engaged theirs."""

    stopped_at: float | None = None
    stopped_by: tuple[str, ...] = ()
    overrides: Overrides = Overrides()
    budget: BudgetSet | None = None


class LocalState:
    """In memory for requests, on disk before a call that changes it is answered. Raises `BadSettings` where what is
    there cannot be read: an engaged kill switch must not be forgotten."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._turn = asyncio.Lock()
        #: for whoever puts in force what is said: kept and in force before the next looks at what was said before
        self.in_turn = asyncio.Lock()
        self.said = self._read()
        #: whether a peer, by its id, was heard of late: then it alone releases what it has engaged
        self.present: Callable[[str], bool] = lambda _: False

    @property
    def stopped(self) -> bool:
        return self.said.stopped_at is not None or bool(self.said.stopped_by)

    @property
    def stopped_by(self) -> str | None:
        """The peer that has engaged it, the first of several."""
        return min(self.said.stopped_by, default=None)

    async def switch(self, *, active: bool) -> bool:
        """Whether it was the other way before. Engaging holds at once, whether the disk takes it or not. Releasing
        also lets go what a peer has engaged that is not heard any more."""
        before = self.said
        stopped_at = (before.stopped_at or time.time()) if active else None
        if active:
            self.said = msgspec.structs.replace(before, stopped_at=stopped_at)
            await self.change(stopped_at=stopped_at)
        else:
            await self.change(stopped_at=None, stopped_by=tuple(filter(self.present, before.stopped_by)))
        return (before.stopped_at is None) == active

    async def stop_for_peer(self, peer_id: str, *, stopped: bool) -> None:
        """What a peer says of its own kill switch. An engaged one holds at once. Raises `OSError`."""
        if stopped == (peer_id in self.said.stopped_by):
            return
        others = tuple(each for each in self.said.stopped_by if each != peer_id)
        stopped_by = (*others, peer_id) if stopped else others
        if stopped:
            self.said = msgspec.structs.replace(self.said, stopped_by=stopped_by)
        await self.change(stopped_by=stopped_by)
        log.warning("outpost.kill_switch_of_peer", peer=peer_id, active=stopped)

    async def change(self, **fields: object) -> None:
        """Raises `OSError`, and nothing is changed then (but for an engaged kill switch)."""
        async with self._turn:
            await self._keep(**fields)

    async def end_budget(self, budget: BudgetSet) -> None:
        """Nothing happens where another one was set meanwhile. Raises `OSError`."""
        async with self._turn:
            if self.said.budget is budget:
                await self._keep(budget=msgspec.structs.replace(budget, ended=True))

    async def _keep(self, **fields: object) -> None:
        said = msgspec.structs.replace(self.said, **fields)
        await asyncio.to_thread(kept.write, self._path, msgspec.json.encode(said))
        # Not what was written: a kill switch that was engaged meanwhile stays so.
        self.said = msgspec.structs.replace(self.said, **fields)

    def _read(self) -> Said:
        document = kept.read(self._path)
        if document is None:
            if self._path.exists():
                raise BadSettings(f"{self._path} cannot be read: it says whether the kill switch is engaged")
            return Said()
        try:
            return msgspec.json.decode(document, type=Said)
        except msgspec.DecodeError as error:
            raise BadSettings(f"{self._path} cannot be read ({error}); remove it to begin anew") from None
