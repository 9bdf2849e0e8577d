"""Serves the static files of the pages."""

from gatehouse.foundation.http.pages import files
from gatehouse.platform.access.pages.rendering import PAGES

router = files.route(PAGES)
