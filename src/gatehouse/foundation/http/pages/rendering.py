"""Renders templates and reads static files."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

_SHARED: Final = Path(__file__).parent
_SHARED_FILES: Final = {"tokens.css": "text/css", "pages.css": "text/css", "icon.svg": "image/svg+xml"}


def headers(form_targets: Iterable[str] = ()) -> dict[str, str]:
    """Returns the headers of a page. `form_targets` lists the foreign origins to which a form on the page may redirect.

    The referrer policy permits the same origin, because without a referrer browsers do not send a form's `Origin`.
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
    """The pages of one deployable. `folder` contains the folder `templates`, whose files may extend `base.html`, and
    the folder `static` with the deployable's `files` (name: media type). All deployables share further static files.
    Templates may call `functions`."""

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
        self._loaded_files: dict[str, tuple[bytes, str]] = {}

    def page(self, template: str, status: int = 200, *, form_targets: Iterable[str] = (), **shown: Any) -> Response:
        """Returns a page. `shown` contains the template's variables. A missing variable is an error."""
        return Response(self.markup(template, **shown), status, headers(form_targets), "text/html")

    def markup(self, template: str, **shown: Any) -> bytes:
        return self._templates.get_template(template).render(shown).encode()

    def static(self, name: str) -> tuple[bytes, str]:
        """Returns a static file's content and media type. Raises `KeyError` for an unknown file."""
        if name not in self._loaded_files:
            folder, media_type = self._files[name]
            self._loaded_files[name] = (folder / "static" / name).read_bytes(), media_type
        return self._loaded_files[name]

    def static_url(self, name: str) -> str:
        """Returns a file's URL with a hash of its content, so that a cached file is never out of date."""
        return f"{self.static_path}/{name}?v={hashlib.sha256(self.static(name)[0]).hexdigest()[:12]}"

    @cached_property
    def _templates(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader([self._folder / "templates", _SHARED / "templates"]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(static_url=self.static_url, **self._functions)
        return environment
