"""Endpoints of files, in OpenAI's form."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from gatehouse.platform.batches.callers import BATCH_RESPONSES, ModelCaller
from gatehouse.platform.batches.files import service
from gatehouse.platform.batches.files.schemas import DeletedFile, File, FileList
from gatehouse.platform.batches.files.uploads import UPLOAD_OPENAPI, read_upload
from gatehouse.platform.batches.ids import FILE_PREFIX, FileId, parse_cursor, shown_id
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/v1/files", tags=["Files and batches"], responses=BATCH_RESPONSES)

MAX_PAGE_FILES: Final = 10_000
ThePath = Annotated[FileId, Path(alias="file_id")]
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bytes of the file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("", response_model=File, openapi_extra=UPLOAD_OPENAPI)
async def upload_file(caller: ModelCaller, request: Request, change: Changing, host: TheHost) -> File:
    """Stores a file of JSON lines for a batch. Only you can see it. It is encrypted at rest."""
    return await service.create(change, host, caller, await read_upload(request))


@router.get("", response_model=FileList)
async def list_files(
    *,
    caller: ModelCaller,
    session: Session,
    after: Annotated[str | None, Query(description="The id of the last file of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_FILES, description="Files to return at most.")] = MAX_PAGE_FILES,
    order: Annotated[Literal["asc", "desc"], Query(description="Order of creation.")] = "desc",
    purpose: Annotated[
        Literal["batch", "batch_output"] | None, Query(description="Only files with this purpose.")
    ] = None,
) -> FileList:
    """Lists your files."""
    last = parse_cursor(FILE_PREFIX, "after", after)
    return await service.list_page(session, caller, after=last, limit=limit, order=order, purpose=purpose)


@router.get("/{file_id}", response_model=File)
async def read_file(caller: ModelCaller, session: Session, file_id: ThePath) -> File:
    """Returns one of your files, without its content."""
    return service.shown(await service.load(session, caller, file_id))


@router.get("/{file_id}/content", response_class=StreamingResponse, responses=_CONTENT)
async def read_file_content(
    caller: ModelCaller, session: Session, file_id: ThePath, host: TheHost
) -> StreamingResponse:
    """Returns the content of one of your files."""
    row = await service.load(session, caller, file_id)
    return StreamingResponse(service.content(host, row), media_type="application/octet-stream")


@router.delete("/{file_id}", response_model=DeletedFile)
async def delete_file(caller: ModelCaller, change: Changing, file_id: ThePath) -> DeletedFile:
    """Deletes one of your files permanently. Batches that were created from it continue. If it is a file of results,
    the results are deleted too."""
    row = await service.load(change.session, caller, file_id, lock=True)
    await service.remove(change, row)
    return DeletedFile(id=shown_id(FILE_PREFIX, row.id))
