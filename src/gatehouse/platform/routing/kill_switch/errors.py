"""Errors of the kill switch endpoints. A missing or unknown `reason` is 400 (docs/kill-switch.md)."""

from typing import Final

from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


class SwitchedModelNotFound(NotFound):
    message = "Model config not found"


class SwitchedProviderNotFound(NotFound):
    message = "Provider not found"


class ProviderSwitchedOff(Conflict):
    code = "provider_kill_switched"

    @classmethod
    def of(cls, provider: str) -> "ProviderSwitchedOff":
        return cls(
            f"The provider {provider} is switched off as a whole, so its models stay off. Release it:"
            f" POST /api/v1/admin/kill-switch/providers/{provider}/enable"
        )
