"""Where a page may send somebody on to: paths of this platform, whatever a link says."""

from typing import Final
from urllib.parse import urlencode, urlsplit

HOME: Final = "/login"
_MAX_CHARS: Final = 10_000


def own(path: str | None) -> str:
    """The path, if it is one of ours that browsers cannot read as another site's; else the home page.

    Browsers drop tabs and line ends, and take a backslash for a slash: neither stands in a path of ours.
    """
    if not path or len(path) > _MAX_CHARS or not path.startswith("/") or path.startswith("//"):
        return HOME
    if not path.isascii() or not path.isprintable() or " " in path or "\\" in path:
        return HOME
    try:
        parts = urlsplit(path)
    except ValueError:
        return HOME
    return HOME if parts.scheme or parts.netloc else path


def to(path: str, next_path: str = HOME, **more: str | None) -> str:
    """An own page that goes on to another one in the end."""
    values = {name: value for name, value in more.items() if value}
    if next_path != HOME:
        values["next"] = next_path
    return f"{path}?{urlencode(values)}" if values else path
