"""A journal of one test with the shared database. Entries are written like those of gateways and stored like by the
keeper."""

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from gatehouse.engine.records.outcome import Opened, Outcome, encode
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import JournalWriter
from gatehouse.platform.keeper.drain import Drain


def outcome(tenant_id: UUID, **fields: Any) -> Outcome[UUID]:
    """Return an outcome: a success, unless `fields` change it."""
    values: dict[str, Any] = {
        "id": new_id(), "tenant_id": tenant_id, "timestamp": time.time(), "request_id": new_id().hex,
        "actor_type": "user", "user_id": None, "api_key_id": None, "client_id": None, "ip": "203.0.113.7",
        "path": "/v1/chat/completions", "requested_model": "sandbox/echo", "provider": "sandbox", "model_id": "echo",
        "outcome": "success", "status": 200, "error_code": None, "stream": False, "input_tokens": 3,
        "output_tokens": 5, "cached_tokens": 0, "cost_usd": "0.000013", "latency_ms": 1.5,
        "time_to_first_token_ms": None, "provider_latency_ms": 1.25, "fallbacks": 0, "dlp_action": "ALLOW",
    }  # fmt: skip
    return Outcome(**{**values, **fields})


def opened(like: Outcome[UUID]) -> Opened[UUID]:
    """Return the entry for the start of this outcome's stream."""
    return Opened(**{name: getattr(like, name) for name in Opened.__struct_fields__})


class Journal:
    """The journal of one home folder. `writer` is that of one gateway until `killed` is called."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.path = path
        self._writer: JournalWriter | None = None

    async def append(self, *entries: Opened[UUID] | Outcome[UUID] | bytes) -> None:
        self._writer = self._writer or JournalWriter(self.path)
        await asyncio.gather(
            *(self._writer.append(entry if isinstance(entry, bytes) else encode(entry)) for entry in entries)
        )

    async def killed(self) -> None:
        """End the gateway. The next entry belongs to another one."""
        if self._writer is not None:
            await self._writer.close()
            self._writer = None

    async def drain(self) -> Drain:
        """Run a keeper until all entries are stored."""
        drain = Drain(self.url, self.path)
        drain.start()
        await asyncio.to_thread(drain.stop, 20)
        return drain
