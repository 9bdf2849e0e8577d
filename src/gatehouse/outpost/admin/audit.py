"""Export of the buffered audit log, to read it or to carry it to the platform where there is no connection
(docs/outpost-records.md)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from uuid import UUID

import structlog
from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from gatehouse.foundation.errors import FieldFault, Unavailable, Unprocessable
from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.outpost.admin.access import Operated
from gatehouse.outpost.records.export import Export
from gatehouse.outpost.records.log import Cursor
from gatehouse.outpost.records.positions import UnknownPlace

router = APIRouter(tags=["Audit"])
log = structlog.get_logger(__name__)

_NDJSON: Final = "application/x-ndjson"
_EXPORT_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "One object a line, oldest first.", "content": {_NDJSON: {"schema": {"type": "string"}}}}
}
#: `<journal_id>:<sequence>` of a line.
PlaceText = Annotated[
    str,
    Field(
        pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[1-9][0-9]{0,15}$",
        description="`journal_id` and `sequence` of a line, with a colon between.",
        examples=["0197a1f4-3c1e-7e4b-9d59-0a4a4e5f6a7b:1500"],
    ),
]


class AnotherProcess(Unavailable):
    code = "records_held"
    message = "Another process of this outpost is ending, and has the records until then. Try again in a moment."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class Confirmation(Body):
    through: PlaceText


class Confirmed(ResponseBody):
    released: Annotated[int, Field(description="Entries that have left the journal by this call.")]
    journal_bytes: Annotated[int, Field(description="What the journal still holds.")]


@router.get("/admin/audit/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
async def export_audit(
    host: Operated,
    *,
    after: Annotated[PlaceText | None, Query()] = None,
    unsent: Annotated[
        bool, Query(description="Only what is still in the journal: not handed in, not confirmed.")
    ] = False,
) -> StreamingResponse:
    """The buffered audit log: first the audit log's files, then the journal. `handed_in` says which of the two a line
    comes from."""
    export = Export(host.records, after=_cursor(after), unsent=unsent)

    async def parts() -> AsyncIterator[bytes]:
        while (part := await asyncio.to_thread(export.part)) is not None:
            yield part
        log.info("outpost.audit_exported", entries=export.entries)

    return StreamingResponse(parts(), media_type=_NDJSON)


@router.post("/admin/audit/export/confirm", response_model=Confirmed)
async def confirm_audit(host: Operated, body: Confirmation) -> Confirmed:
    """Confirms that everything up to this line was carried away: it leaves the journal, and counts as handed in. The
    journal of an outpost in an air gap fills up without this call."""
    through = _cursor(body.through)
    assert through is not None
    if not await asyncio.to_thread(host.records.claim):
        raise AnotherProcess
    try:
        released = await asyncio.to_thread(host.records.confirm, through)
    except UnknownPlace:
        raise Unprocessable(
            faults=[FieldFault("through", "is not in the journal: never written, or confirmed before")]
        ) from None
    log.warning("outpost.audit_confirmed", entries=released, through=body.through)
    return Confirmed(released=released, journal_bytes=host.journal.size_bytes())


def _cursor(text: str | None) -> Cursor | None:
    if text is None:
        return None
    journal_id, _, sequence = text.partition(":")
    return Cursor(UUID(journal_id), int(sequence))
