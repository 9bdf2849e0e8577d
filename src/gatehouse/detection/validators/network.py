"""Validates network addresses of machines."""

import ipaddress


def ipv4(text: str) -> bool:
    """Check that this is an IPv4 address: four numbers up to 255 without leading zeros. A prefix length may follow."""
    address, _, prefix = text.partition("/")
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return not prefix or (prefix.isdigit() and int(prefix) <= 32 and str(parsed) == address)


def ipv6(text: str) -> bool:
    address, _, prefix = text.partition("/")
    try:
        ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return False
    return (not prefix or (prefix.isdigit() and int(prefix) <= 128)) and len(address) > 2


def mac(text: str) -> bool:
    """Check that all separators are the same, and that the address is neither zero nor the broadcast address."""
    digits = {character for character in text.lower() if character.isalnum()}
    separators = {character for character in text if not character.isalnum()}
    return len(separators) <= 1 and not digits <= {"0"} and not digits <= {"f"}
