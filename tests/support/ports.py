import socket


def free_port() -> int:
    """Return a port that is not in use now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
