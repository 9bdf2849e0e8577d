"""The platform's own pages, with their script, template functions and error format."""

from pathlib import Path
from typing import Final

import segno
from markupsafe import Markup

from gatehouse.foundation.http.pages import Pages, errors


def qr_code(text: str) -> Markup:
    """Return a QR code as SVG, dark on light in every color scheme, because not every camera reads the inverse."""
    svg: str = segno.make(text, error="m").svg_inline(
        scale=4, border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True
    )
    return Markup(svg)  # noqa: S704 - segno's own output


PAGES: Final = Pages(
    Path(__file__).parent,
    static_path="/login/static",
    files={"passkey.js": "text/javascript"},
    functions={"qr_code": qr_code},
)
page = PAGES.page
#: The error format of every path with pages.
ERROR_FORMAT: Final = errors.error_format(PAGES)
