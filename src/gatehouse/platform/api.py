"""The table of contents: every family of the administration API, a line each."""

from typing import Final

from fastapi import APIRouter

from gatehouse.foundation.http.envelopes import ErrorForm
from gatehouse.platform.access.api_keys.routes import router as api_keys

FAMILIES: Final[tuple[APIRouter, ...]] = (
    api_keys,
)  # fmt: skip

#: The error forms of families that do not answer in `detail` form, by path prefix (each from its `errors.py`).
ERROR_FORMS: Final[dict[str, ErrorForm]] = {}
