import random
import socket
from typing import Final

#: Ports below the range from which Linux takes the local port of an outgoing connection. A connection of another test
#: therefore cannot take the port before its server starts.
_PORTS: Final = range(12_000, 32_000)


def free_port() -> int:
    """Return a port that is not in use now."""
    while True:
        port = random.choice(_PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
