"""The templates of the portal's pages, and the format of their errors."""

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
#: The format (HTML) of errors on `PATHS`.
ERROR_FORMAT: Final = errors.error_format(PAGES)
PATHS: Final = ("/login", "/logout", "/dashboard", "/settings", "/organizations", "/invitation")
