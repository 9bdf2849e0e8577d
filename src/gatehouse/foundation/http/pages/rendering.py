"""Templates to answers, and the files that they name."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

_SHARED: Final = Path(__file__).parent
_SHARED_FILES: Final = {"pages.css": "text/css", "icon.svg": "image/svg+xml"}


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


class Pages:
    """The pages of one deployable. `folder` holds its `templates`, which may extend `base.html`, and in `static` the
    `files` (name: media type) that they name beside the shared ones; `functions` are what templates may call."""

    def __init__(
        self,
        folder: Path,
        *,
        static_path: str,
        files: Mapping[str, str] | None = None,
        functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        self.static_path = static_path
        self._folder = folder
        self._files = {name: (_SHARED, kind) for name, kind in _SHARED_FILES.items()}
        self._files |= {name: (folder, kind) for name, kind in (files or {}).items()}
        self._functions = functions or {}
        self._read: dict[str, tuple[bytes, str]] = {}

    def page(self, template: str, status: int = 200, *, form_targets: Iterable[str] = (), **shown: Any) -> Response:
        """`shown` is what the template names; what it does not get is an error, not an empty place."""
        return Response(self.markup(template, **shown), status, headers(form_targets), "text/html")

    def markup(self, template: str, **shown: Any) -> bytes:
        return self._templates.get_template(template).render(shown).encode()

    def static(self, name: str) -> tuple[bytes, str]:
        """A file's content and type. Raises `KeyError` for what is none of ours."""
        if name not in self._read:
            folder, media_type = self._files[name]
            self._read[name] = (folder / "static" / name).read_bytes(), media_type
        return self._read[name]

    def static_url(self, name: str) -> str:
        """With a part that changes with the content: what a browser has under it is never old."""
        return f"{self.static_path}/{name}?v={hashlib.sha256(self.static(name)[0]).hexdigest()[:12]}"

    @cached_property
    def _templates(self) -> Environment:
        made = Environment(
            loader=FileSystemLoader([self._folder / "templates", _SHARED / "templates"]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.globals.update(static_url=self.static_url, **self._functions)
        return made
