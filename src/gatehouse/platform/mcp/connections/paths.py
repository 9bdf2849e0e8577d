"""Addresses of the pages on which users connect their accounts."""

from typing import Final

PREFIX: Final = "/connect"
CALLBACK: Final = "/callback"


def page_url(public_url: str | None, server: str) -> str:
    """Return the address of the page for a server. It is the same for all users: the person who opens it connects their
    own account."""
    return f"{(public_url or '').rstrip('/')}{PREFIX}/{server}"


def redirect_uri(public_url: str, server: str) -> str:
    """Return the redirect URI, which is registered at the authorization server. Each server has its own, so that the
    answer of one authorization server is never taken for that of another one."""
    return page_url(public_url, server) + CALLBACK
