"""Releases a request's place at a deployment of a model alias when the request has ended (docs/deployments.md)."""

from gatehouse.engine.exchange import Exchange
from gatehouse.engine.ports import Ports


def release(x: Exchange, ports: Ports) -> None:
    """Release the place, and correct the tokens that were counted for the request."""
    if x.place is None:
        return
    used = x.usage
    tokens = None
    if used is not None:
        tokens = used.input_tokens + used.output_tokens + used.cached_tokens + used.cache_write_tokens
    x.place.release(ports.clock.monotonic(), tokens)
