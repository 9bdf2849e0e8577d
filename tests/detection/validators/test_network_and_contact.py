"""Network addresses, contact data and dates."""

from collections.abc import Callable

import pytest

from gatehouse.detection.validators import contact, network


@pytest.mark.parametrize(
    ("check", "text", "expected"),
    [
        (network.ipv4, "203.0.113.7", True),
        (network.ipv4, "10.0.0.0/8", True),
        (network.ipv4, "10.0.0.0/33", False),
        (network.ipv4, "256.1.1.1", False),
        (network.ipv4, "1.2.3.04", False),
        (network.ipv6, "2001:db8::1", True),
        (network.ipv6, "fe80::1%eth0", True),
        (network.ipv6, "2001:db8::/32", True),
        (network.ipv6, "2001:db8::/129", False),
        (network.ipv6, "::", False),
        (network.ipv6, "1::2::3", False),
        (network.mac, "00:1A:2B:3C:4D:5E", True),
        (network.mac, "00:1A-2B:3C:4D:5E", False),
        (network.mac, "ff:ff:ff:ff:ff:ff", False),
        (contact.email_domain, "jane@example.org", True),
        (contact.email_domain, "icon@2x.png", False),
        (contact.email_domain, "a..b@example.org", False),
        (contact.email_domain, "a@b-.org", False),
        (contact.international_phone, "+44 20 7946 0958", True),
        (contact.international_phone, "+44 20 79", False),
        (contact.international_phone, "+1234567890123456", False),
        (contact.international_phone, "00 12345678", True),
        (contact.international_phone, "00 1234567", False),
        (contact.international_phone, "00 123456789012345", True),
        (contact.international_phone, "00 1234567890123456", False),
        (contact.national_phone, "0171 2345678", True),
        (contact.national_phone, "415-555-0132x12345", True),
        (contact.national_phone, "21.12.2021", False),
        (contact.national_phone, "2021-12-21", False),
        (contact.national_phone, "1111111", False),
        (contact.real_date, "2024-02-29", True),
        (contact.real_date, "2023-02-29", False),
        (contact.real_date, "31/12/99", True),
        (contact.real_date, "12/31/1999", True),
        (contact.real_date, "31/31/2021", False),
        (contact.real_date, "1/2-2021", False),
        (contact.real_date, "March 3, 1999", True),
    ],
)
def test_identifiers_are_validated_by_their_structure(check: Callable[[str], bool], text: str, expected: bool) -> None:
    assert check(text) is expected
