"""An engine for many calls with one policy. The clock advances between calls."""

import json
from collections.abc import Sequence
from typing import Any

from tests.support.engine import EngineHarness

from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.fields.tables import ALL_TOOLS, OPENAI_CHAT
from gatehouse.foundation.identity import TenantId
from gatehouse.policy.snapshot import Snapshot


class FastEngine(EngineHarness):
    """The provider `chat` has OpenAI's dialect, `claude` Anthropic's. All fields are allowed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(dlp=DlpOptions(**options))
        self.serve("chat", "m")
        self.serve("claude", "m", kind="anthropic")
        self.allowed_fields = (*OPENAI_CHAT, ALL_TOOLS)
        self._snapshot: Snapshot | None = None

    async def current(self, tenant_id: TenantId) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = await super().current(tenant_id)
        return self._snapshot

    async def exchange(
        self, dialect: str, body: dict[str, Any], answer: Sequence[bytes]
    ) -> tuple[int, bytes, bytes | None]:
        """Return the status, everything that the client receives, and the request to the provider, if there was one."""
        self.clock.move(5)
        self.outbound.sent.clear()
        self.outbound.script = [(200, list(answer))]
        got = await self.engine.answer(self.request(body, dialect=dialect))
        result = json.dumps(dict(got.headers)).encode() + got.body
        if got.stream is not None:
            result += b"".join([block async for block in got.stream])
        sent = self.outbound.sent[0] if self.outbound.sent else None
        return got.status, result, None if sent is None else json.dumps(dict(sent.headers)).encode() + sent.body
