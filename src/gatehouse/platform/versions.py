"""Versions of rows, so that of two who change the same row neither undoes the other's work unseen (RFC 9110, 13.1.1).

The answer that shows a row carries its version as `ETag`. A change that sends it back as `If-Match` is 412, and changes
nothing, once the row is another; without `If-Match` the last one wins. Rows are versioned by `updated_at`, which what
is only observed (a sign-in, a health check) does not move.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import Depends, Request, Response
from sqlalchemy import inspect
from starlette.datastructures import MutableHeaders

from gatehouse.foundation.errors import PreconditionFailed
from gatehouse.foundation.storage.rows import Row

READING: Final = frozenset({"GET", "HEAD"})

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def tag(row: Row) -> str | None:
    """The row's version as an entity tag; None for a row that has none."""
    updated_at: datetime | None = getattr(row, "updated_at", None)
    if updated_at is None:
        return None
    return f'"{(updated_at - _EPOCH) // timedelta(microseconds=1):x}"'


class Versions:
    """Of the row that a request is about; one a request."""

    def __init__(self, request: Request, response: Response) -> None:
        self._request = request
        self._response = response
        self._row: Row | None = None
        self._answered = False

    def about(self, row: Row, parameter: str | None = None, *, part: str = "") -> None:
        """The request is about this row, locked if the request changes it. The answer is the row itself where the path
        ends with the `parameter` that named it, or has none; or it is the `part` of it that the path ends with, whose
        changes are the row's."""
        path: str = self._request.scope["route"].path
        self._row = row
        self._answered = parameter is None or path.endswith(f"{{{parameter}}}{part}")
        if self._answered and self._request.method in READING:
            self._tell(self._response.headers)

    def require(self) -> None:
        """The row is the version that the request speaks of. Raises `PreconditionFailed`."""
        lines = self._request.headers.getlist("if-match")
        if self._row is None or not lines:
            return
        # A proxy that compresses makes weak tags of strong ones: it is the same version all the same.
        wanted = {each.strip().removeprefix("W/") for each in ",".join(lines).split(",")}
        if tag(self._row) not in wanted and "*" not in wanted:
            raise PreconditionFailed

    def changed(self) -> None:
        """The change is committed. Its answer is made already, so that what is added goes another way."""
        if self._answered:
            self._tell(self._request.scope["state"]["told"])

    def _tell(self, headers: MutableHeaders | dict[str, str]) -> None:
        if self._row is not None and inspect(self._row).persistent:
            version = tag(self._row)
            if version is not None:
                headers["ETag"] = version


#: For whoever loads rows.
TheVersions = Annotated[Versions, Depends(Versions)]
