"""Errors of the IP allowlist."""

from gatehouse.foundation.errors import BadRequest


class CallerAddressExcluded(BadRequest):
    """The new list would lock out the caller: 400 (docs/ip-allowlist.md)."""

    def __init__(self, address: str) -> None:
        message = f"Your own address {address} is not in the new list, so you would lock yourself out."
        super().__init__(message, code="caller_address_excluded")
