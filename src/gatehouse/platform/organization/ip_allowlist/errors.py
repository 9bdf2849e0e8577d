"""What can go wrong with the IP allowlist."""

from gatehouse.foundation.errors import BadRequest


class CallerAddressExcluded(BadRequest):
    """Decisions 3."""

    def __init__(self, address: str) -> None:
        told = f"Your own address {address} is not in the new list: you would lock yourself out."
        super().__init__(told, code="caller_address_excluded")
