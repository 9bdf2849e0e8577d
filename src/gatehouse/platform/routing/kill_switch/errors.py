"""What can go wrong with the kill switch. A missing or unknown `reason` is 400 here (reference 3, Kill switch)."""

from typing import Final

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.envelopes import DETAIL, ErrorForm

FORM: Final[ErrorForm] = DETAIL.validating(400)


class ModelNotFound(NotFound):
    message = "Model config not found"


class ProviderNotFound(NotFound):
    message = "Provider not found"
