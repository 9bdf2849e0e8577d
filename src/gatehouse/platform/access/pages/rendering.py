"""The platform's own pages, and what they need beside what all pages have."""

from pathlib import Path
from typing import Final

import segno
from markupsafe import Markup

from gatehouse.foundation.http.pages import Pages


def qr_code(text: str) -> Markup:
    """Dark on light whatever the page's colours are: not every camera reads the reverse."""
    drawn: str = segno.make(text, error="m").svg_inline(
        scale=4, border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True
    )
    return Markup(drawn)  # noqa: S704 - of segno's own making


PAGES: Final = Pages(
    Path(__file__).parent,
    static_path="/login/static",
    files={"passkey.js": "text/javascript"},
    functions={"qr_code": qr_code},
)
page = PAGES.page
