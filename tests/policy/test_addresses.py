"""Ranges of addresses."""

import random
from ipaddress import ip_address, ip_network

import pytest

from gatehouse.foundation.egress.networks import network
from gatehouse.policy.addresses import AddressRanges


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("192.0.2.7", "192.0.2.7/32"),
        ("192.0.2.0/255.255.255.0", "192.0.2.0/24"),
        ("2001:DB8:0:0::1/32", "2001:db8::/32"),
        ("::1", "::1/128"),
        ("::/0", "::/0"),
        # An IPv4 address of a client may also be written as IPv6.
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
    ],
)
def test_a_range_is_written_in_canonical_form(written: str, canonical: str) -> None:
    assert str(network(written)) == canonical


@pytest.mark.parametrize("written", ["", "x", "10.0.0.0/33", "10.0.0/8", "010.0.0.1", "::/129", "10.0.0.1-10.0.0.9"])
def test_an_invalid_range_is_refused(written: str) -> None:
    with pytest.raises(ValueError):
        network(written)


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("10.255.255.255", True),
        ("11.0.0.0", False),
        ("9.255.255.255", False),
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("2001:db8:ffff::1", True),
        ("2001:db9::", False),
        ("::1", False),
        ("", False),
        ("nonsense", False),
        ("10.0.0.1\0", False),
        ("10.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_an_address_is_looked_up_among_ranges_of_both_kinds(address: str, inside: bool) -> None:
    ranges = AddressRanges(map(network, ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.1", "2001:db8::/32"]))
    assert (address in ranges) == inside


def test_an_empty_list_of_ranges_contains_no_address() -> None:
    assert "127.0.0.1" not in AddressRanges([])


def test_the_search_gives_the_same_result_as_checking_each_range() -> None:
    chance = random.Random(7)
    networks = [ip_network((chance.getrandbits(32), chance.randint(8, 32)), strict=False) for _ in range(300)]
    ranges = AddressRanges(networks)
    for _ in range(3000):
        address = ip_address(chance.getrandbits(32))
        assert (str(address) in ranges) == any(address in network for network in networks)
