"""Starts `gatehouse serve ...` processes that do not import the package again, because tests start hundreds of them.

    process = launch(["serve", "platform", "--port", "0"], env=..., cwd=..., log=...)
    process.pid, process.poll(), process.wait(10), process.send_signal(signal.SIGTERM)

One process imports what an application needs, once, compiles the built-in patterns, builds the routes of the platform's
administration, and forks for each start, as the supervisor does for its gateways.
The fork has its own arguments, environment, working folder and log, and runs the command line's `main`. Tests of
starting itself, and of memory, run `python -m gatehouse`.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

#: the imported modules by application
MODULES = {
    "platform": "gatehouse.platform.worker.supervisor",
    "outpost": "gatehouse.outpost.serve",
    "portal": "gatehouse.portal.server.process",
}
_SIZE_BYTES = 4


class Launched:
    """A process, with the interface of `subprocess.Popen`."""

    def __init__(self, launcher: "_Launcher", pid: int, arguments: Sequence[str]) -> None:
        self._launcher = launcher
        self._arguments = arguments
        self.pid = pid

    def poll(self) -> int | None:
        """Return the exit status. It is the negative signal number if a signal ended the process."""
        return self._launcher.statuses.get(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        with self._launcher.changed:
            if not self._launcher.changed.wait_for(lambda: self.poll() is not None, timeout):
                raise subprocess.TimeoutExpired(list(self._arguments), timeout or 0)
        return self._launcher.statuses[self.pid]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def launch(arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Launched:
    return _launcher().launch(arguments, env=env, cwd=cwd, log=log)


@functools.cache
def _launcher() -> "_Launcher":
    return _Launcher()


class _Launcher:
    """The launcher as seen by the tests."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self.statuses: dict[int, int] = {}
        self._pids: list[int] = []
        self.changed = threading.Condition()
        self._one_at_a_time = threading.Lock()
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(self._socket.close)

    def launch(self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Launched:
        order = json.dumps({"arguments": list(arguments), "environment": dict(env), "folder": str(cwd)}).encode()
        with self._one_at_a_time, self.changed:
            socket.send_fds(self._socket, [len(order).to_bytes(_SIZE_BYTES, "big")], [log.fileno()])
            self._socket.sendall(order)
            assert self.changed.wait_for(lambda: self._pids, 60), "the launcher does not answer"
            return Launched(self, self._pids.pop(), arguments)

    def _read(self) -> None:
        with self._socket.makefile() as lines:
            for line in lines:
                message = json.loads(line)
                with self.changed:
                    if "status" in message:
                        self.statuses[message["pid"]] = message["status"]
                    else:
                        self.statuses.pop(message["pid"], None)
                        self._pids.append(message["pid"])
                    self.changed.notify_all()


class _Started(Exception):
    """Raised in a forked process, to leave the loop below and run the command."""


def _serve(orders: socket.socket) -> None:
    """The launcher's process: forks for each request, and reports which processes have ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    awake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    while True:
        readable, _, _ = select.select([orders, awake], [], [])
        if awake in readable:
            os.read(awake, 4096)
            _report_ended(orders)
        if orders in readable:
            header, descriptors, _, _ = socket.recv_fds(orders, _SIZE_BYTES, 1)
            if not header:
                sys.exit()
            order = json.loads(_exactly(orders, int.from_bytes(header, "big")))
            _import_for(order["arguments"])
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for descriptor in (awake, wakes, orders.detach()):
                    os.close(descriptor)
                _become(order, descriptors[0])
            os.close(descriptors[0])
            _send(orders, {"pid": pid})


def _report_ended(orders: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _send(orders, {"pid": pid, "status": os.waitstatus_to_exitcode(status)})


def _send(orders: socket.socket, message: Mapping[str, Any]) -> None:
    orders.sendall(json.dumps(message).encode() + b"\n")


def _exactly(orders: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        content += orders.recv(size - len(content))
    return content


def _import_for(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["serve"]:
        importlib.import_module(MODULES[arguments[1]])
        if arguments[1] == "platform":
            _build_administration()
        if arguments[1] != "portal":
            # The patterns are compiled once for all starts, because this takes longer than the rest of a start.
            importlib.import_module("gatehouse.policy.dlp.compile").built_in_matcher()


@functools.cache
def _build_administration() -> None:
    """Build the routes once for all starts. Each fork has its own copy. A start with another default variant builds its
    own."""
    application = importlib.import_module("gatehouse.platform.worker.app")
    application.administration = functools.cache(application.administration)
    variants = importlib.import_module("gatehouse.foundation.http.variants")
    application.administration(variants.Variant.A)


def _become(order: Mapping[str, Any], log: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["gatehouse", *order["arguments"]]
    raise _Started


if __name__ == "__main__":
    import gc

    # Garbage collection is rare, because the imported modules stay in use.
    gc.set_threshold(1_000_000)
    from setproctitle import setproctitle

    from gatehouse.cli import main

    # The first call must run while the initial environment is unchanged: it locates the memory of the process title by
    # it.
    setproctitle("gatehouse's launcher of tests")
    with contextlib.suppress(_Started):
        _serve(socket.socket(fileno=int(sys.argv[1])))
    setproctitle(" ".join([sys.executable, "-P", "-m", *sys.argv]))
    main()
