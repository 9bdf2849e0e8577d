"""E-mail addresses as people's names: one spelling each, judged by their form alone, never by asking the network."""

from typing import Annotated, Final

import email_validator
from pydantic import AfterValidator, Field

#: The longest address that mail knows (RFC 5321, 4.5.3.1).
MAX_CHARS: Final = 254

# Private networks have such names, the first admin's among them; nothing is ever sent there by us.
for _private in ("local", "test"):
    email_validator.SPECIAL_USE_DOMAIN_NAMES.remove(_private)


def normal(address: str) -> str:
    """The one spelling under which an address is kept and compared: lower case, Unicode composed.

    Raises `ValueError`, with a sentence for the caller, for what is no address.
    """
    try:
        found = email_validator.validate_email(address, check_deliverability=False)
    except email_validator.EmailNotValidError as error:
        raise ValueError(str(error)) from None
    return found.normalized.lower()


#: What stands for the address of a user who has none: nothing is ever sent to such a domain (RFC 2606), and none can be
#: proven.
NOWHERE: Final = "@no-address.invalid"


def shown(address: str) -> str | None:
    """The address as answers and records say it; None for a user who has none."""
    return None if address.endswith(NOWHERE) else address


def domain(address: str) -> str:
    """The part after the @ sign, in lower case; empty where there is none."""
    return address.rpartition("@")[2].lower() if "@" in address else ""


#: A body's field: comes out in its normal spelling.
Email = Annotated[
    str,
    Field(max_length=MAX_CHARS, examples=["ada@example.com"], json_schema_extra={"format": "email"}),
    AfterValidator(normal),
]
