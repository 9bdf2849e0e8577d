"""Reads samples of the organization's own requests (`dlp_samples`) for replays."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from gatehouse.engine.records.samples import Contents
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.governance.dlp_samples.contents import decrypt
from gatehouse.platform.governance.dlp_samples.table import LabelKind, SampleRow, newest
from gatehouse.platform.governance.replays.schemas import Recorded
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.policy.governance import PolicyAction

#: Maximum characters of all samples of one replay.
MAX_CHARACTERS: Final = 10_000_000


class RecordedSample(NamedTuple):
    """An opened sample. `labels` and `expected_action` come from a reviewer."""

    id: str
    contents: Contents
    labels: Mapping[str, bool] | None
    expected_action: PolicyAction | None


async def read(
    transactions: SplitTransactions,
    sealer: Sealer,
    selection: Recorded,
    *,
    draft: Literal["dlp_rules", "policies"],
    label_kind: LabelKind,
) -> list[RecordedSample]:
    """Return the selected samples, newest first. `selection.labelled` refers to labels of `label_kind`.

    The audit event is committed before any sample is opened. Samples that cannot be opened are left out.
    """
    async with transactions.changing() as change:
        rows = await newest(
            change.session,
            last=selection.last,
            days=selection.days,
            labelled=selection.labelled,
            label_kind=label_kind,
            characters=MAX_CHARACTERS,
        )
        change.session.expunge_all()
        change.record("dlp_sample.replayed", "dlp_sample", draft=draft, samples=len(rows), **selection.model_dump())
    return await asyncio.to_thread(_open, sealer, rows)


def _open(sealer: Sealer, rows: Sequence[SampleRow]) -> list[RecordedSample]:
    samples: list[RecordedSample] = []
    for row in rows:
        try:
            contents = decrypt(sealer, row.tenant_id, row.id, row.sealed_key, row.contents)
        except CannotOpen:
            continue
        samples.append(RecordedSample(str(row.id), contents, row.labels, row.expected_action))  # type: ignore[arg-type]
    return samples
