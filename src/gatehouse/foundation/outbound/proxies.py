"""Which proxy the environment names for a host: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, and NO_PROXY against them."""

import re
import urllib.request
from typing import Final


def environment_proxy(scheme: str, host: str) -> str | None:
    """The proxy's URL, credentials and all, or None to go straight. Reads the environment: ask once a URL."""
    proxies = urllib.request.getproxies()
    named = proxies.get(scheme) or proxies.get("all")
    # A proxy's own loopback is not this machine's.
    if not named or _LOOPBACK(host) or urllib.request.proxy_bypass(host):
        return None
    return named


_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|::1").fullmatch
