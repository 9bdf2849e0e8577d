"""What operators have said to this outpost, which outlives the process: kill switch, overrides, budget."""

import asyncio
import time
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import kept
from gatehouse.policy.overlay import Overrides

_FILE: Final = "state.json"


class BudgetSet(msgspec.Struct, frozen=True, kw_only=True):
    """The month's limits; None: without end. After `expires_at` (Unix time) nothing may be spent until it is set anew:
    so an outpost that nobody reaches cannot go on for ever."""

    usd: Decimal | None = None
    requests: int | None = None
    expires_at: float | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """`budget` None: what the settings say. `stopped_at`: when the kill switch was engaged, Unix time."""

    stopped_at: float | None = None
    overrides: Overrides = Overrides()
    budget: BudgetSet | None = None


class LocalState:
    """In memory for requests, on disk before a call that changes it is answered. Raises `BadSettings` where what is
    there cannot be read: an engaged kill switch must not be forgotten."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._turn = asyncio.Lock()
        self.said = self._read()
        #: engaged by a peer
        self.stopped_by: str | None = None

    @property
    def stopped(self) -> bool:
        return self.said.stopped_at is not None or self.stopped_by is not None

    async def switch(self, *, active: bool) -> bool:
        """Whether it was the other way before. Engaging holds at once, whether the disk takes it or not."""
        before = self.said
        stopped_at = (before.stopped_at or time.time()) if active else None
        if active:
            self.said = msgspec.structs.replace(before, stopped_at=stopped_at)
        await self.change(stopped_at=stopped_at)
        return (before.stopped_at is None) == active

    async def change(self, **fields: object) -> None:
        """Raises `OSError`, and nothing is changed then (but for an engaged kill switch)."""
        async with self._turn:
            said = msgspec.structs.replace(self.said, **fields)
            await asyncio.to_thread(kept.write, self._path, msgspec.json.encode(said))
            self.said = said

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
