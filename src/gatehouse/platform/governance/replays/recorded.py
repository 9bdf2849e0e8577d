"""Samples of the organization's own requests to try a draft on (`dlp_samples`)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from gatehouse.engine.samples import Contents
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.platform.governance.dlp_samples.contents import opened
from gatehouse.platform.governance.dlp_samples.table import LabelKind, SampleRow, newest
from gatehouse.platform.governance.replays.schemas import Recorded
from gatehouse.platform.requests import Apart
from gatehouse.policy.governance import PolicyAction

#: Of all samples together.
MOST_CHARACTERS: Final = 10_000_000


class RecordedSample(NamedTuple):
    """`labels` and `expected_action` are a reviewer's."""

    id: str
    contents: Contents
    labels: Mapping[str, bool] | None
    expected_action: PolicyAction | None


async def read(
    parts: Apart, sealer: Sealer, wanted: Recorded, *, draft: Literal["dlp_rules", "policies"], by: LabelKind
) -> list[RecordedSample]:
    """Newest first. It is in the audit chain before any of them is opened. One that does not open is left out. `by` is
    the kind of label that `wanted.labelled` asks for."""
    async with parts.changing() as change:
        rows = await newest(
            change.session,
            last=wanted.last,
            days=wanted.days,
            labelled=wanted.labelled,
            by=by,
            characters=MOST_CHARACTERS,
        )
        change.session.expunge_all()
        change.record("dlp_sample.replayed", "dlp_sample", draft=draft, samples=len(rows), **wanted.model_dump())
    return await asyncio.to_thread(_open, sealer, rows)


def _open(sealer: Sealer, rows: Sequence[SampleRow]) -> list[RecordedSample]:
    samples: list[RecordedSample] = []
    for row in rows:
        try:
            contents = opened(sealer, row.tenant_id, row.id, row.sealed_key, row.contents)
        except CannotOpen:
            continue
        samples.append(RecordedSample(str(row.id), contents, row.labels, row.expected_action))  # type: ignore[arg-type]
    return samples
