"""The endpoints of usage (docs/records.md)."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from gatehouse.engine.records.attribution import TAG_PATTERN
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OffsetWindow, offset_window, sort_parameter
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.platform.records.by_day import RecordFilters
from gatehouse.platform.records.filters import ExactFilter, From, To
from gatehouse.platform.records.minutes.aliases import AliasPart
from gatehouse.platform.records.usage import listing
from gatehouse.platform.records.usage.listing import UsageRecordNotFound
from gatehouse.platform.records.usage.schemas import (
    SeriesPeriod,
    Sort,
    UsageRecord,
    UsageRecordDetails,
    UsageRecordsPage,
    UsageSeries,
)
from gatehouse.platform.records.usage.table import UsageRecordRow
from gatehouse.platform.request.callers import RESPONSES, AdminReader, ApiReader
from gatehouse.platform.request.injected import Session

router = APIRouter(tags=["Usage"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=200))]

_encode = msgspec.json.Encoder(decimal_format="number").encode


async def _filters(
    *,
    user_id: UUID | None = None,
    group_id: UUID | None = None,
    api_key_id: UUID | None = None,
    provider: ExactFilter = None,
    model_id: ExactFilter = None,
    tag: Annotated[str | None, Query(pattern=TAG_PATTERN, description="A tag that the record must have.")] = None,
    end_user: Annotated[
        ExactFilter, Query(description="The end user that the body named. Only the first 256 characters are compared.")
    ] = None,
    status: Annotated[Literal["success", "refused", "error", "cancelled", "interrupted"] | None, Query()] = None,
    request_id: Annotated[ExactFilter, Query(description="Value of the header `X-Request-Id` of the answer.")] = None,
    model_alias: Annotated[ExactFilter, Query(description="Name of a model alias.")] = None,
    since: From = None,
    until: To = None,
) -> RecordFilters:
    kind = {
        "user_id": user_id,
        "group_id": group_id,
        "provider": provider,
        "model_id": model_id,
        "api_key_id": api_key_id,
    }
    return RecordFilters(
        {name: value for name, value in kind.items() if value is not None},
        since,
        until,
        tuple(
            listing.uncounted(
                tag=tag,
                end_user=end_user,
                status=status,
                request_id=request_id,
                model_alias=model_alias,
            )
        ),
    )


@router.get("/api/v1/usage/records", response_model=UsageRecordsPage)
async def list_usage_records(
    caller: ApiReader,
    session: Session,
    window: Window,
    filters: Annotated[RecordFilters, Depends(_filters)],
    *,
    sort: Annotated[Sort, sort_parameter()] = "-timestamp",
) -> Response:
    """Lists usage records, by default newest first. Administrators, auditors and clients see all records of the
    organization; other callers see their own. Only `timestamp` sorts any number of records. With another `sort`, the
    response is 400 `too_many_records_to_sort` if more than 100,000 records match the filters and the period. `tokens`
    is the sum of `input_tokens` and `output_tokens`. Records whose value is unknown come last."""
    rows, total = await listing.page(session, window, filters, sort=sort, only=_only(caller))
    return _response(window.envelope("records", [_shown(row) for row in rows], total))


@router.get("/api/v1/usage/records/{record_id}", response_model=UsageRecordDetails)
async def read_usage_record(caller: ApiReader, session: Session, record_id: PathId) -> Response:
    """Returns one usage record, with the attempts at providers. Administrators, auditors and clients can read all
    records of the organization; other callers can read their own."""
    row = None if record_id is None else await listing.find(session, record_id, only=_only(caller))
    if row is None:
        raise UsageRecordNotFound
    details = {"error_code": row.error_code, "cache": row.cache, "attempts": _attempts(row)}
    return _response({**_shown(row), **details})


@router.get("/api/admin/usage/series", response_model=UsageSeries)
async def read_usage_series(
    caller: AdminReader,
    session: Session,
    *,
    period: SeriesPeriod = "day",
    model_alias: Annotated[ExactFilter, Query(description="Only requests of this model alias.")] = None,
    by: Annotated[
        AliasPart | None,
        Query(description="Adds the series of each model alias, or of each deployment of the aliases, as `parts`."),
    ] = None,
) -> UsageSeries:
    """Returns the organization's requests and cost, for today by the hour, or for the last 7 or 30 days including today
    by the day (UTC). A request is counted when it ends."""
    return await listing.usage_series(session, period, alias=model_alias, by=by)


def _shown(row: UsageRecordRow) -> dict[str, Any]:
    return {**{name: getattr(row, name) for name in UsageRecord.model_fields}, "tags": row.tags or []}


def _attempts(row: UsageRecordRow) -> list[dict[str, Any]]:
    """Return the failed attempts, and the attempt that was answered."""
    attempts = [{"credential": None, **attempt} for attempt in row.attempts or []]
    failed = {(attempt["provider"], attempt["model_id"]) for attempt in attempts}
    # The record of a call that timed out names the model, because the provider may charge for the call.
    is_answered = row.attempt_ms is not None or (row.provider, row.model_id) not in failed
    if row.provider is not None and row.cache != "hit" and is_answered:
        # The duration is unknown for interrupted streams, cancelled calls and older records.
        answered = {
            "provider": row.provider,
            "model_id": row.model_id,
            "duration_ms": row.attempt_ms,
            "credential": row.credential,
        }
        attempts.append({**answered, "status": None, "reason": None})
    return attempts


def _response(body: dict[str, Any]) -> Response:
    """Encode the body here instead of with the response model, so that costs keep every digit."""
    return Response(_encode(body), media_type="application/json")


def _only(caller: Caller) -> UUID | None:
    """Return the id of the only user whose records the caller may see, or None if the caller may see all."""
    sees_all = caller.kind is CallerKind.OAUTH_CLIENT or caller.role in {Role.ADMIN, Role.AUDITOR}
    return None if sees_all else caller.user_id
