"""An outpost's files without its process: answered requests, uploads, exports."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from tests.support.journal import outcome

from gatehouse.engine.records.outcome import (
    DlpEvent,
    Failed,
    RuleEvent,
    ToolCalled,
    encode,
)
from gatehouse.foundation.journal import JournalWriter
from gatehouse.outpost.records.export import Export
from gatehouse.outpost.records.log import AuditLog
from gatehouse.outpost.records.positions import OutpostRecords

TENANT = uuid4()
DLP_EVENT = DlpEvent(
    rule_id="r", rule_name="e-mail", detector_type="regex", entity_type="email", direction="input", status="redacted",
    action="redact", severity="medium", source="platform", score=0.9, match_count=2,
)  # fmt: skip
RULE_EVENT = RuleEvent(
    kind="content_filter", rule_id="f", rule_name="a filter", action="keyword_block", result="matched"
)
TRIED = Failed(provider="one", model_id="m", status=503, reason="server_error")
RICH = outcome(
    TENANT, dlp_events=(DLP_EVENT,), rule_events=(RULE_EVENT,), attempts=(TRIED,), budgets=((uuid4(), 1_770_000_000),),
    group_ids=(uuid4(),), end_user="customer-1", tags=("team=search", "v:2"),
    requested_model="a\nmodel\r", timestamp=1770000000.123457,
)  # fmt: skip
#: a call of a tool with the same events
TOOL_CALL = ToolCalled(
    id=uuid4(), tenant_id=TENANT, timestamp=1770000000.25, request_id="r", actor_type="user", user_id=uuid4(),
    api_key_id=None, client_id=None, ip="10.0.0.5", requested_model="mcp:weather/forecast", provider=None,
    model_id=None, path="/mcp", server_id=uuid4(), server="weather", tool="forecast",
    definition_hash="sha256:" + "0" * 64, arguments_digest=None, outcome="refused", status=403, error_code="e",
    is_error=False, latency_ms=1.5, upstream_ms=None, result_bytes=None, dlp_action="REDACT", dlp_events=(DLP_EVENT,),
    rule_events=(RULE_EVENT,), group_ids=(uuid4(),), budgets=((uuid4(), 1_770_000_000),),
)  # fmt: skip


class OutpostFiles:
    """The files of an outpost, without its process."""

    def __init__(self, folder: Path, *, max_bytes: int = 100_000, max_files: int = 100) -> None:
        self.folder = folder
        self.audit = AuditLog(folder / "audit", max_bytes=max_bytes, max_files=max_files)
        (folder / "journal").mkdir(parents=True, exist_ok=True)
        self.records = OutpostRecords(folder, self.audit)
        assert self.records.claim()

    def answer(self, count: int) -> list[str]:
        """Write entries for this many answered requests of a live process. Return their request ids."""
        ids = [uuid4().hex for _ in range(count)]
        time.sleep(0.002)  # writers' ids are ordered by the millisecond
        asyncio.run(self._append([encode(outcome(TENANT, request_id=id_)) for id_ in ids]))
        return ids

    async def _append(self, lines: list[bytes]) -> None:
        writer = JournalWriter(self.folder / "journal", max_bytes=1024**2)
        for line in lines:
            await writer.append(line)
        await writer.close()

    def hand_in(self, most: int = 2_000) -> int:
        """Upload like `Upload`, to a platform that accepts everything. Return the number of entries."""
        batch = self.records.take(most)
        if batch is None:
            return 0
        self.records.mark_uploaded(batch)
        return len(batch.entries)

    def exported(self, **options: object) -> list[dict[str, object]]:
        export = Export(self.records, **options)  # type: ignore[arg-type]
        return read(iter(export.part, None))

    def again(self) -> "OutpostFiles":
        """Open the files again, as after a kill."""
        self.records.close()
        return OutpostFiles(self.folder)


def read(parts: Iterator[bytes | None]) -> list[dict[str, object]]:
    return [json.loads(line) for part in parts if part for line in part.splitlines()]


def requests(lines: list[dict[str, object]]) -> list[object]:
    return [line["request_id"] for line in lines if line["type"] == "outcome"]
