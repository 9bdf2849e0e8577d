"""Reads the proxy for a host from the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

import re
import urllib.request
from typing import Final


def environment_proxy(scheme: str, host: str) -> str | None:
    """Returns the proxy's URL with its credentials, or None for a direct connection. Call it once for each URL, because
    it reads the whole environment."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    # Behind a proxy, a loopback address would name the proxy's machine and not this one.
    if not proxy or _LOOPBACK(host) or urllib.request.proxy_bypass(host):
        return None
    return proxy


_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|::1").fullmatch
