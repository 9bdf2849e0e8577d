"""Errors of the health endpoints."""

from typing import Final

from gatehouse.foundation.errors import Forbidden, NotFound, Unavailable
from gatehouse.foundation.http.envelopes import NAMED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = NAMED


class ComponentNotFound(NotFound):
    message = "There is no component with this name."


class ScrapeRefused(Forbidden):
    message = "Metrics are available only to the networks in METRICS_ALLOWED_CIDRS."


class Unhealthy(Unavailable):
    code = "unhealthy"
    message = "The database does not answer."
