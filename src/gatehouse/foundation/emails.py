"""E-mail addresses as user names: normalized, and validated by their syntax without network access."""

from typing import Annotated, Final

import email_validator
from pydantic import AfterValidator, Field

#: the maximum length of an address (RFC 5321, 4.5.3.1)
MAX_ADDRESS_CHARACTERS: Final = 254

# Private networks use these domains for the addresses of users, among them the first admin.
for _domain in ("local", "test"):
    email_validator.SPECIAL_USE_DOMAIN_NAMES.remove(_domain)


def normalize(address: str) -> str:
    """Returns the normalized address for storage and comparison: lower case, composed Unicode.

    Raises `ValueError` with a message for the caller if it is not an address.
    """
    try:
        validated = email_validator.validate_email(address, check_deliverability=False)
    except email_validator.EmailNotValidError as error:
        raise ValueError(str(error)) from None
    return validated.normalized.lower()


def ascii_form(address: str) -> str:
    """Returns the address with its domain in ASCII, which every mail server can route. Raises `ValueError` if it is not
    an address."""
    try:
        validated = email_validator.validate_email(address, check_deliverability=False)
    except email_validator.EmailNotValidError:
        raise ValueError("not an e-mail address") from None
    return validated.ascii_email or validated.normalized


#: Ending of the placeholder that is stored for a user without an address. The domain is reserved (RFC 2606), so nobody
#: can own it.
PLACEHOLDER_SUFFIX: Final = "@no-address.invalid"


def visible_address(address: str) -> str | None:
    """Returns the address for responses and records, or None if it is the placeholder of a user without an address."""
    return None if address.endswith(PLACEHOLDER_SUFFIX) else address


def domain(address: str) -> str:
    """Returns the part after the last @ sign in lower case, or an empty text if there is no @ sign."""
    return address.rpartition("@")[2].lower() if "@" in address else ""


#: type of a body's field; the value is normalized
Email = Annotated[
    str,
    Field(max_length=MAX_ADDRESS_CHARACTERS, examples=["ada@example.com"], json_schema_extra={"format": "email"}),
    AfterValidator(normalize),
]
