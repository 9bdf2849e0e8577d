"""What can go wrong with samples. A malformed body is 400, as all below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound


class SampleNotFound(NotFound):
    message = "Sample not found"
