"""The samples' endpoints."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.platform.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.governance.dlp_samples import service
from gatehouse.platform.governance.dlp_samples.errors import SampleNotFound
from gatehouse.platform.governance.dlp_samples.schemas import NewLabels, RevealedSample, Sample, SampleList
from gatehouse.platform.governance.dlp_samples.table import SampleRow
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session, loaded

router = APIRouter(prefix="/api/admin/dlp-rules/samples", tags=["DLP"], responses=RESPONSES)

LoadedSample = Annotated[SampleRow, Depends(loaded(SampleRow, "sample_id", SampleNotFound))]
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]


@router.get("", response_model=SampleList)
async def list_dlp_samples(
    caller: AdminReader, session: Session, window: Window, labelled: bool | None = None
) -> object:
    """Samples of the organization's requests, newest first, without what they say."""
    return await service.listed(session, window, labelled)


@router.post("/{sample_id}/reveal", response_model=RevealedSample)
async def reveal_dlp_sample(caller: Admin, sample: LoadedSample, change: Changing, host: TheHost) -> object:
    """What a sample says, for who labels it. It is in the audit chain who looked."""
    return await service.reveal(change, host.sealer, sample)


@router.put("/{sample_id}/labels", response_model=Sample)
async def label_dlp_sample(caller: Admin, sample: LoadedSample, body: NewLabels, change: Changing) -> object:
    """Which entity types are in a sample and which are not, and what policy rules should have come to: what replays are
    measured by."""
    return service.label(change, sample, body)


@router.delete("/{sample_id}", status_code=204)
async def delete_dlp_sample(caller: Admin, sample: LoadedSample, change: Changing) -> None:
    """Removes a sample for good."""
    await service.delete(change, sample)
