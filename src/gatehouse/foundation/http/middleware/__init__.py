"""ASGI middleware that all administration APIs share."""
