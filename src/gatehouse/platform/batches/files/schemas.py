"""Bodies of the endpoints of files, in OpenAI's form. Times are Unix times in seconds."""

from typing import Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class File(ResponseBody):
    id: str = Field(examples=["file-0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"])
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int
    filename: str = Field(examples=["calls.jsonl"])
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed"] = "processed"


class FileList(ResponseBody):
    object: Literal["list"] = "list"
    data: list[File]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedFile(ResponseBody):
    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True
