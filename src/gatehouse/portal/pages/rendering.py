"""The portal's own pages."""

from datetime import datetime
from pathlib import Path
from typing import Final

from gatehouse.foundation.http.pages import Pages, errors


def moment(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


PAGES: Final = Pages(
    Path(__file__).parent,
    static_path="/login/static",
    files={"portal.css": "text/css"},
    functions={"moment": moment},
)
#: The form of every path under which people find pages.
FORM: Final = errors.form(PAGES)
PATHS: Final = ("/login", "/logout", "/dashboard", "/settings", "/organizations", "/invitation")
