"""Configures the process that serves an administration API: the options of uvicorn, and the tuning of memory and
threads."""

import asyncio
import gc
import socket
import ssl
import sys
from typing import Any, Literal

import uvicorn

from gatehouse.foundation.processes.memory import MemoryTrimmer, trim_heap


def server_config(
    app: Any,
    protocol: Any,
    *,
    tls: ssl.SSLContext | None,
    drain_seconds: int,
    lifespan: Literal["on", "off"] = "on",
) -> uvicorn.Config:
    """Return the options of a server. `protocol` is a protocol class, or a function that returns the protocol of a
    connection."""
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=protocol,
        ws="none",
        lifespan=lifespan,
        access_log=False,
        log_config=None,
        server_header=False,
        # `ClientAddresses` derives the client's address from TRUSTED_PROXIES.
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=drain_seconds,
    )
    if tls is not None:
        config.load()
        config.ssl = tls
    return config


def tune_process() -> asyncio.Task[None]:
    """Tune the process after it has started to serve. Return a task that returns freed memory to the system after later
    peaks."""
    # Objects that exist now live as long as the process. They are excluded from garbage collection.
    gc.collect()
    gc.freeze()
    # Return the memory that was freed after the start to the system (glibc only).
    trim_heap()
    # Requests create few reference cycles. With the default threshold of 700 objects, garbage collection runs too
    # often.
    gc.set_threshold(20_000, 20, 20)
    # Long texts are inspected in a thread, which must return the interpreter lock to the event loop quickly.
    sys.setswitchinterval(0.001)
    return asyncio.create_task(MemoryTrimmer().run())


class TunedServer(uvicorn.Server):
    """A server of uvicorn that tunes its process after it has started to serve."""

    _trimming: asyncio.Task[None] | None = None

    def on_serving(self) -> None:
        """Called after the server has started to serve. Subclasses override this method."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self.on_serving()
            self._trimming = tune_process()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
        await super().shutdown(sockets=sockets)
