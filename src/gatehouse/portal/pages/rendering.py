"""The templates and the error form of the portal's pages."""

from datetime import datetime
from pathlib import Path
from typing import Final

from gatehouse.foundation.http.pages import Pages, errors


def moment(time: datetime | None) -> str:
    return "never" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


PAGES: Final = Pages(
    Path(__file__).parent,
    static_path="/login/static",
    files={"portal.css": "text/css"},
    functions={"moment": moment},
)
#: Error form of all paths of pages.
ERROR_FORMAT: Final = errors.error_format(PAGES)
PATHS: Final = ("/login", "/logout", "/dashboard", "/settings", "/organizations", "/invitation")
