"""Exports the buffered audit log, so that an operator can read it, or carry it to the platform if the outpost has no
connection (docs/outpost-records.md)."""

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
#: A place in the audit log: `<journal_id>:<sequence>` of a line.
PlaceText = Annotated[
    str,
    Field(
        pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[1-9][0-9]{0,15}$",
        description="`journal_id` and `sequence` of a line, separated by a colon.",
        examples=["0197a1f4-3c1e-7e4b-9d59-0a4a4e5f6a7b:1500"],
    ),
]


class AnotherProcess(Unavailable):
    code = "records_held"
    message = "Another process of this outpost is ending and still uses the records. Try again in a moment."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class Confirmation(Body):
    through: PlaceText


class Confirmed(ResponseBody):
    released: Annotated[int, Field(description="Number of entries that this call removed from the journal.")]
    journal_bytes: Annotated[int, Field(description="Size of the journal after the call.")]


@router.get("/admin/audit/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
async def export_audit(
    host: Operated,
    *,
    after: Annotated[PlaceText | None, Query()] = None,
    unsent: Annotated[
        bool, Query(description="Only lines that are still in the journal: neither uploaded nor confirmed.")
    ] = False,
) -> StreamingResponse:
    """Returns the buffered audit log: the lines of the audit log's files, then those of the journal. `handed_in` is
    true for lines of the files."""
    export = Export(host.records, after=_cursor(after), unsent=unsent)

    async def parts() -> AsyncIterator[bytes]:
        while (part := await asyncio.to_thread(export.part)) is not None:
            yield part
        log.info("outpost.audit_exported", entries=export.entries)

    return StreamingResponse(parts(), media_type=_NDJSON)


@router.post("/admin/audit/export/confirm", response_model=Confirmed)
async def confirm_audit(host: Operated, body: Confirmation) -> Confirmed:
    """Confirms that all lines up to this one have been carried away. They are removed from the journal and count as
    handed in. Without this call the journal of an outpost in an air gap fills up."""
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
