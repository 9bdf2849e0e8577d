"""Errors of samples. The status of a malformed body is 400, as on all paths below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound


class SampleNotFound(NotFound):
    message = "Sample not found"
