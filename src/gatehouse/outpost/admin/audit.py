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
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.records.export import Export
from gatehouse.outpost.records.log import Cursor
from gatehouse.outpost.records.positions import UnknownPlace

router = APIRouter(tags=["Audit"])
log = structlog.get_logger(__name__)

_NDJSON: Final = "application/x-ndjson"
_UNKNOWN_RECORD: Final = (
    "names no known record. The record was never written, or all records of its journal have been uploaded or"
    " confirmed. Use the `journal_id` and `sequence` of an exported line"
)
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


class RecordsInUse(Unavailable):
    code = "records_held"
    message = "Another process of this outpost is ending and still uses the records. Try again in a moment."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class Confirmation(Body):
    through: PlaceText


class Confirmed(ResponseBody):
    released: Annotated[int, Field(description="Number of records that this request removed from the journal.")]
    journal_bytes: Annotated[int, Field(description="Size of the journal after the request.")]


@router.get("/admin/audit/export", response_class=StreamingResponse, responses=_EXPORT_RESPONSES)
async def export_audit(
    host: AuthorizedHost,
    *,
    after: Annotated[PlaceText | None, Query()] = None,
    unsent: Annotated[
        bool, Query(description="Only records that are still in the journal: neither uploaded nor confirmed.")
    ] = False,
) -> StreamingResponse:
    """Returns the buffered audit log as JSON lines: first the records that were uploaded or confirmed (`handed_in` is
    true), then the records that are still in the journal (`handed_in` is false)."""
    export = Export(host.records, after=_cursor(after), unsent=unsent)

    async def parts() -> AsyncIterator[bytes]:
        while (part := await asyncio.to_thread(export.part)) is not None:
            yield part
        log.info("outpost.audit_exported", entries=export.entries)

    return StreamingResponse(parts(), media_type=_NDJSON)


@router.post("/admin/audit/export/confirm", response_model=Confirmed)
async def confirm_audit(host: AuthorizedHost, body: Confirmation) -> Confirmed:
    """Confirms that you have exported all records up to and including `through`. They are removed from the journal, and
    `handed_in` is true for them from then on. Without confirmations, the journal of an outpost without a connection
    to the platform fills up."""
    through = _cursor(body.through)
    assert through is not None
    if not await asyncio.to_thread(host.records.claim):
        raise RecordsInUse
    try:
        released = await asyncio.to_thread(host.records.confirm, through)
    except UnknownPlace:
        raise Unprocessable(faults=[FieldFault("through", _UNKNOWN_RECORD)]) from None
    log.warning("outpost.audit_confirmed", entries=released, through=body.through)
    return Confirmed(released=released, journal_bytes=host.journal.size_bytes())


def _cursor(text: str | None) -> Cursor | None:
    if text is None:
        return None
    journal_id, _, sequence = text.partition(":")
    return Cursor(UUID(journal_id), int(sequence))
