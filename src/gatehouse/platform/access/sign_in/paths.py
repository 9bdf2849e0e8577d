"""Restricts redirects of the pages to paths of this platform."""

from typing import Final
from urllib.parse import urlencode, urlsplit

HOME: Final = "/login"
CONSOLE: Final = "/console"
_MAX_PATH_CHARACTERS: Final = 10_000


def own_path(path: str | None) -> str:
    """Return the path if it is a path of this platform that browsers cannot resolve to another site, else the home
    page.

    Tabs, line ends and backslashes are not allowed, because browsers drop tabs and line ends, and treat a backslash as
    a slash.
    """
    if not path or len(path) > _MAX_PATH_CHARACTERS or not path.startswith("/") or path.startswith("//"):
        return HOME
    if not path.isascii() or not path.isprintable() or " " in path or "\\" in path:
        return HOME
    try:
        parts = urlsplit(path)
    except ValueError:
        return HOME
    return HOME if parts.scheme or parts.netloc else path


def link_to(path: str, next_path: str = HOME, **parameters: str | None) -> str:
    """Return the URL of a page of this platform, with `next_path` as the final destination."""
    values = {name: value for name, value in parameters.items() if value}
    if next_path != HOME:
        values["next"] = next_path
    return f"{path}?{urlencode(values)}" if values else path
