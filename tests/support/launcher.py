"""Starts `gatehouse serve ...` processes that do not import the package again, because tests start hundreds of them.

    process = launch(["serve", "platform", "--port", "0"], env=..., cwd=..., log=...)
    process.pid, process.poll(), process.wait(10), process.send_signal(signal.SIGTERM)

One process imports what an application needs, once, compiles the built-in patterns, builds the routes of the platform's
administration, and forks for each start, as the supervisor does for its gateways.
The fork has its own arguments, environment, working folder and log, and runs the command line's `main`. Tests of
starting itself, and of memory, run `python -m gatehouse`.

All parts of the suite (`tests/parts.py`) use the same process, whose address is in `LAUNCHER_VARIABLE`. They are forks
of it themselves: the arguments `["pytest", ...]` run pytest. The process ends when its last client has disconnected.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NoReturn

#: the imported modules by application
MODULES = {
    "platform": "gatehouse.platform.worker.supervisor",
    "outpost": "gatehouse.outpost.serve",
    "portal": "gatehouse.portal.server.process",
}
_SIZE_BYTES = 4
#: The environment variable with the path of the launcher's socket.
LAUNCHER_VARIABLE: Final = "TEST_LAUNCHER_SOCKET"
#: Time limit for a start. The first start of an application imports it, next to other processes.
_START_TIMEOUT_SECONDS: Final = 120
PYTEST: Final = "pytest"


class Launched:
    """A process, with the interface of `subprocess.Popen`."""

    def __init__(self, launcher: "Launcher", pid: int, arguments: Sequence[str]) -> None:
        self._launcher = launcher
        self._arguments = arguments
        self.pid = pid

    @property
    def cpu_seconds(self) -> float:
        """The processor time of the ended process and of all child processes that it has waited for."""
        return self._launcher.cpu_seconds[self.pid]

    def poll(self) -> int | None:
        """Return the exit status. It is the negative signal number if a signal ended the process."""
        return self._launcher.statuses.get(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        launcher = self._launcher
        with launcher.changed:
            if not launcher.changed.wait_for(lambda: self.poll() is not None or launcher.has_ended, timeout):
                raise subprocess.TimeoutExpired(list(self._arguments), timeout or 0)
        if self.poll() is None:
            raise RuntimeError("the launcher has ended; its error is in the output of the run")
        return self._launcher.statuses[self.pid]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # The process may have ended already: the launcher's message is then still on its way.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def launch(arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Launched:
    return launcher().launch(arguments, env=env, cwd=cwd, log=log)


@functools.cache
def launcher() -> "Launcher":
    """Return the launcher of this process: that of the suite, or else a new one."""
    address = os.environ.get(LAUNCHER_VARIABLE)
    return Launcher() if address is None else Launcher(Path(address))


class Launcher:
    """A launcher as seen by a client: the one at this address, or else a new one."""

    def __init__(self, address: Path | None = None) -> None:
        self.address = _start() if address is None else address
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(self.address))
        self.statuses: dict[int, int] = {}
        self.cpu_seconds: dict[int, float] = {}
        self._pids: list[int] = []
        self.has_ended = False
        self.changed = threading.Condition()
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(self._socket.close)

    def launch(self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Launched:
        order = json.dumps({"arguments": list(arguments), "environment": dict(env), "folder": str(cwd)}).encode()
        with self._one_at_a_time, self.changed:
            socket.send_fds(self._socket, [len(order).to_bytes(_SIZE_BYTES, "big")], [log.fileno()])
            self._socket.sendall(order)
            self.changed.wait_for(lambda: self._pids or self.has_ended, _START_TIMEOUT_SECONDS)
            assert self._pids, "the launcher does not answer"
            return Launched(self, self._pids.pop(), arguments)

    def _read(self) -> None:
        try:
            with self._socket.makefile() as lines:
                for line in lines:
                    self._note(json.loads(line))
        finally:
            with self.changed:
                self.has_ended = True
                self.changed.notify_all()

    def _note(self, message: Mapping[str, Any]) -> None:
        with self.changed:
            if "status" in message:
                self.statuses[message["pid"]] = message["status"]
                self.cpu_seconds[message["pid"]] = message["cpu_seconds"]
            else:
                self.statuses.pop(message["pid"], None)
                self._pids.append(message["pid"])
            self.changed.notify_all()


def _start() -> Path:
    """Start a launcher, and return its address."""
    # The path is short, because a socket's path may have 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="gl", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(100)
        command = [sys.executable, "-P", __file__, str(listener.fileno())]
        subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL)
    return folder / "socket"


class _Started(Exception):
    """Raised in a forked process, to leave the loop below and run the command."""


def _serve(listener: socket.socket) -> None:
    """The launcher's process: forks for each order, and reports to the client which processes have ended."""
    # Signals for the whole process group end the processes. The launcher ends with its last client.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    awake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    #: the client of each running process
    clients: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(awake, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        watched = len(selector.get_map())
        while True:
            for key, _ in selector.select():
                if key.fd == awake:
                    os.read(awake, 4096)
                    _report_ended(clients)
                elif key.fileobj is listener:
                    selector.register(listener.accept()[0], selectors.EVENT_READ)
                elif (received := _received(key.fileobj)) is not None:
                    _fork(
                        *received, key.fileobj, clients, [*(key.fileobj for key in selector.get_map().values()), wakes]
                    )
                else:
                    # A client that was killed has not stopped its processes.
                    for pid in [pid for pid, owner in clients.items() if owner is key.fileobj]:
                        os.kill(pid, signal.SIGTERM)
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    if len(selector.get_map()) == watched:
                        sys.exit()


def _received(client: socket.socket) -> tuple[Any, int] | None:
    """Return the client's next order and the descriptor of its log, or None if the client has disconnected."""
    try:
        header, descriptors, _, _ = socket.recv_fds(client, _SIZE_BYTES, 1)
        return (json.loads(_exactly(client, int.from_bytes(header, "big"))), descriptors[0]) if header else None
    except ConnectionError:
        return None


def _fork(
    order: Any, log: int, client: socket.socket, clients: dict[int, socket.socket], kept: Sequence[socket.socket | int]
) -> None:
    """Start the process of an order. It has no copy of the sockets and descriptors in `kept`."""
    _import_for(order["arguments"])
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for item in kept:
            os.close(item if isinstance(item, int) else item.detach())
        _become(order, log)
    os.close(log)
    clients[pid] = client
    _send(client, {"pid": pid})


def _report_ended(clients: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        result = {"status": os.waitstatus_to_exitcode(status), "cpu_seconds": usage.ru_utime + usage.ru_stime}
        _send(clients.pop(pid), {"pid": pid, **result})


def _send(client: socket.socket, message: Mapping[str, Any]) -> None:
    # A client that has ended needs no message.
    with contextlib.suppress(OSError):
        client.sendall(json.dumps(message).encode() + b"\n")


def _exactly(client: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = client.recv(size - len(content))
        if not part:
            raise ConnectionError
        content += part
    return content


def _import_for(arguments: Sequence[str]) -> None:
    if arguments[:1] == [PYTEST]:
        # Most tests need the platform. Modules of tests are not imported here, because pytest rewrites their `assert`.
        importlib.import_module(MODULES["platform"])
    if arguments[:1] == ["serve"]:
        importlib.import_module(MODULES[arguments[1]])
        if arguments[1] == "platform":
            _build_administration()
        if arguments[1] != "portal":
            # The patterns are compiled once for all starts, because this takes longer than the rest of a start.
            importlib.import_module("gatehouse.policy.dlp.compile").built_in_matcher()
    # The forks share the memory of all objects that exist now.
    gc.freeze()


@functools.cache
def _build_administration() -> None:
    """Build the routes once for all starts. Each fork has its own copy. A start with another default variant builds its
    own."""
    application = importlib.import_module("gatehouse.platform.worker.app")
    application.administration = functools.cache(application.administration)
    variants = importlib.import_module("gatehouse.foundation.http.variants")
    application.administration(variants.Variant.A)


def _use_no_built_administration() -> None:
    """Undo `_build_administration` in a process that may have several platforms, each with its own routes."""
    application = importlib.import_module("gatehouse.platform.worker.app")
    application.administration = getattr(application.administration, "__wrapped__", application.administration)


def _become(order: Mapping[str, Any], log: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    if order["arguments"][0] == PYTEST:
        _use_no_built_administration()
        # As with `python -m pytest`.
        sys.path[:0] = [order["folder"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        sys.argv = order["arguments"]
    else:
        sys.argv = ["gatehouse", *order["arguments"]]
    raise _Started


if __name__ == "__main__":
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
    if sys.argv[0] == PYTEST:
        import pytest

        sys.exit(pytest.main())
    main()
