"""The routes of the console's files."""

from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.pages import Pages
from gatehouse.platform.console.files import BUILT, INDEX, SHARED, BuiltFile, built_files

router = APIRouter(include_in_schema=False)

#: The content security policy of the sign-in pages, extended by the needs of the application: calls of the API, and
#: fonts. Trusted Types forbid scripts made from text, and text inserted as markup.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: The folder of files whose names contain a hash of their content.
_HASHED_FOLDER: Final = "assets/"
#: The rest of a path in this folder is the token of a share link.
_SHARED_FOLDER: Final = "shared/"
_IMMUTABLE: Final = "public, max-age=31536000, immutable"
_REVALIDATED: Final = "no-cache"

_PAGES: Final = Pages(Path(__file__).parent, static_path="/login/static")


class ConsoleFiles:
    """Answers requests for the files of one folder."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._files = built_files(folder)

    def answer(self, path: str, request: Request) -> Response:
        """Return the file, or for other paths the application, or the page of a shared conversation. Raises `NotFound`
        for an unknown file."""
        if not self._files:
            explanation = _PAGES.page("no_console.html", 200)
            explanation.headers.update(_HEADERS)
            return explanation
        file = self._files.get(path)
        if file is None and _names_a_file(path):
            raise NotFound
        page = self._files[SHARED if path.startswith(_SHARED_FOLDER) else INDEX]
        return _file_response(file or page, request, hashed=path.startswith(_HASHED_FOLDER))


def _names_a_file(path: str) -> bool:
    """Return whether a path refers to a file. Paths of the application have no dot in their last segment."""
    return path.startswith(_HASHED_FOLDER) or "." in path.rpartition("/")[2]


def _file_response(file: BuiltFile, request: Request, *, hashed: bool) -> Response:
    headers = {**_HEADERS, "Cache-Control": _IMMUTABLE if hashed else _REVALIDATED, "ETag": file.etag}
    headers["Vary"] = "Accept-Encoding"
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content, coding = file.content(request.headers.get("accept-encoding", ""))
    if coding is not None:
        headers["Content-Encoding"] = coding
    return Response(content, headers=headers, media_type=file.media_type)


_console_files: Final = ConsoleFiles()


@router.api_route("/console", methods=["GET", "HEAD"])
@router.api_route("/console/{path:path}", methods=["GET", "HEAD"])
async def console_file(request: Request, path: str = INDEX) -> Response:
    return _console_files.answer(path, request)
