"""Lists, reveals, labels and deletes samples."""

from typing import Any

from sqlalchemy import not_, select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.dlp_samples.contents import decrypt
from gatehouse.platform.governance.dlp_samples.schemas import NewLabels, RevealedSample, Sample
from gatehouse.platform.governance.dlp_samples.table import SampleRow, is_labelled


async def list_page(session: AsyncSession, window: OffsetWindow, labelled: bool | None) -> dict[str, Any]:
    query = select(SampleRow)
    if labelled is not None:
        any_label = is_labelled("labels", "expected_action")
        query = query.where(any_label if labelled else not_(any_label))
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query.order_by(SampleRow.id.desc())))).all()
    return window.envelope("samples", rows, total)


async def reveal(change: Change, sealer: Sealer, row: SampleRow) -> RevealedSample:
    """Return a sample with its contents, and record the access."""
    change.record("dlp_sample.revealed", "dlp_sample", row.id, sampled_request_id=row.request_id)
    await change.session.refresh(row, ["contents"])
    contents = decrypt(sealer, row.tenant_id, row.id, row.sealed_key, row.contents)
    return RevealedSample(
        **Sample.model_validate(row).model_dump(),
        contents=contents.texts,
        answer=contents.answer,
        dlp_action=contents.dlp_action,
        policy_action=contents.policy_action,
        context=contents.facts,
    )


def label(change: Change, row: SampleRow, body: NewLabels) -> SampleRow:
    """Label a sample. Raises `Unprocessable` if the body has no field."""
    changes = body.sent()
    if not changes:
        raise Unprocessable(faults=[FieldFault("labels", "send `labels`, `expected_action` or both")])
    for name, value in changes.items():
        setattr(row, name, value)
    is_labelled_now = row.labels is not None or row.expected_action is not None
    row.labelled_by = change.caller.actor_id if change.caller and is_labelled_now else None
    row.labelled_at = utc_now() if is_labelled_now else None
    change.record("dlp_sample.labelled", "dlp_sample", row.id, **changes)
    return row


async def delete(change: Change, row: SampleRow) -> None:
    await change.session.delete(row)
    change.record("dlp_sample.deleted", "dlp_sample", row.id)
