"""Endpoints of samples."""

from typing import Annotated

from fastapi import APIRouter, Depends

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.platform.governance.dlp_samples import service
from gatehouse.platform.governance.dlp_samples.schemas import NewLabels, RevealedSample, Sample, SampleList
from gatehouse.platform.governance.dlp_samples.table import SampleRow
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/dlp-rules/samples", tags=["DLP"], responses=RESPONSES)


class SampleNotFound(NotFound):
    message = "Sample not found"


LoadedSample = Annotated[SampleRow, Depends(loaded(SampleRow, "sample_id", SampleNotFound))]
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]


@router.get("", response_model=SampleList)
async def list_dlp_samples(
    caller: AdminReader, session: Session, window: Window, labelled: bool | None = None
) -> object:
    """Lists samples of the organization's requests, newest first, without their contents."""
    return await service.list_page(session, window, labelled)


@router.post("/{sample_id}/reveal", response_model=RevealedSample)
async def reveal_dlp_sample(caller: Admin, sample: LoadedSample, change: Changing, host: TheHost) -> object:
    """Returns the contents of a sample, for labelling. The audit chain records the access."""
    return await service.reveal(change, host.sealer, sample)


@router.put("/{sample_id}/labels", response_model=Sample)
async def label_dlp_sample(caller: Admin, sample: LoadedSample, body: NewLabels, change: Changing) -> object:
    """Labels a sample: the entity types that it contains or does not contain, and the expected action of policy rules.
    Replays are scored by these labels."""
    return service.label(change, sample, body)


@router.delete("/{sample_id}", status_code=204)
async def delete_dlp_sample(caller: Admin, sample: LoadedSample, change: Changing) -> None:
    """Removes a sample permanently."""
    await service.delete(change, sample)
