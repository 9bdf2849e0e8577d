"""The process that serves an administration API: uvicorn's options, and how memory and threads are tuned."""

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
    """Return the options of a server. `protocol` is a class of connections, or a function that makes one."""
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
    """Tunes the process once it serves. Return the task that returns the memory of later peaks to the system."""
    # Objects loaded by now live as long as the process: exclude them from garbage collection.
    gc.collect()
    gc.freeze()
    # Returns the memory freed after the start to the system (glibc only).
    trim_heap()
    # Requests leave few reference cycles: the default threshold of 700 objects collects too often.
    gc.set_threshold(20_000, 20, 20)
    # Long texts are inspected in a thread, which must return the interpreter lock to the event loop quickly.
    sys.setswitchinterval(0.001)
    return asyncio.create_task(MemoryTrimmer().run())


class TunedServer(uvicorn.Server):
    """uvicorn's server, which tunes its process once it serves."""

    _trimming: asyncio.Task[None] | None = None

    def on_serving(self) -> None:
        """Called once the server serves."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self.on_serving()
            self._trimming = tune_process()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
        await super().shutdown(sockets=sockets)
