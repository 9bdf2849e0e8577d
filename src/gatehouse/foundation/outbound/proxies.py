"""The environment's proxy for a host: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

import re
import urllib.request
from typing import Final


def environment_proxy(scheme: str, host: str) -> str | None:
    """Return the proxy's URL with its credentials, or None for a direct connection. Reads the environment: call it once
    for each URL."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    # Loopback addresses are this machine's, not the proxy's.
    if not proxy or _LOOPBACK(host) or urllib.request.proxy_bypass(host):
        return None
    return proxy


_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|::1").fullmatch
