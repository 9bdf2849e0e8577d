"""Templates to answers, and the files that they name."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

STATIC_PATH: Final = "/login/static"
_HERE: Final = Path(__file__).parent
_STATIC: Final = {"pages.css": "text/css", "passkey.js": "text/javascript", "icon.svg": "image/svg+xml"}


def headers(form_targets: Iterable[str] = ()) -> dict[str, str]:
    """`form_targets`: the origins beside our own to which an answer to a form on this page may send the browser on.

    The referrer stays inside, where it makes browsers say which page a form came from.
    """
    targets = " ".join(["'self'", *form_targets])
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
            f"form-action {targets}; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def page(template: str, status: int = 200, *, form_targets: Iterable[str] = (), **shown: Any) -> Response:
    """`shown` is what the template names; what it does not get is an error, not an empty place."""
    return Response(markup(template, **shown), status, headers(form_targets), "text/html")


def markup(template: str, **shown: Any) -> bytes:
    return _templates().get_template(template).render(shown).encode()


@cache
def static(name: str) -> tuple[bytes, str]:
    """A file's content and type. Raises `KeyError` for what is none of ours."""
    media_type = _STATIC[name]
    return (_HERE / "static" / name).read_bytes(), media_type


def static_url(name: str) -> str:
    """With a part that changes with the content: what a browser has under it is never old."""
    return f"{STATIC_PATH}/{name}?v={hashlib.sha256(static(name)[0]).hexdigest()[:12]}"


def qr_code(text: str) -> Markup:
    """Dark on light whatever the page's colours are: not every camera reads the reverse."""
    drawn: str = segno.make(text, error="m").svg_inline(
        scale=4, border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True
    )
    return Markup(drawn)  # noqa: S704 - of segno's own making


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(static_url=static_url, qr_code=qr_code)
    return made
