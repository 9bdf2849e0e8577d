import pytest

from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.settings import BadSettings

PROXIES = ClientAddresses(["10.0.0.0/8", "fd00::/8", "::1/128"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "1.1.1.1", "203.0.113.9"),  # not a trusted proxy: any client can send the header
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),  # the client has sent the left address
        ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
        ("10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9"),  # all are trusted proxies: the first one of the list
        ("10.0.0.1", "6.6.6.6, nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "6.6.6.6,,10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1:4711", "1.1.1.1"),
        ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("10.0.0.1", "2001:DB8:0::1", "2001:db8::1"),
        ("10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "6.6.6.6, ::ffff:10.0.0.3", "6.6.6.6"),
        ("::ffff:10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("::ffff:203.0.113.9", "1.1.1.1", "203.0.113.9"),
        ("fd00::5%eth0", "1.1.1.1", "1.1.1.1"),
        ("::1", '"1.1.1.1"', "1.1.1.1"),
        ("10.0.0.1", "0x01010101", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1\x00", "10.0.0.1"),
        ("10.0.0.1", "9" * 100_000, "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6," + "10.0.0.2," * 5000 + "10.0.0.3", "10.0.0.2"),
        (None, "1.1.1.1", "0.0.0.0"),
        ("", "1.1.1.1", "0.0.0.0"),
        ("testclient", None, "0.0.0.0"),
    ],
)
def test_the_header_is_read_from_its_end_and_only_trusted_proxies_are_skipped(peer, forwarded, client):
    assert PROXIES.client(peer, forwarded) == client


def test_without_trusted_proxies_the_header_is_ignored():
    addresses = ClientAddresses([])
    headers = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-real-ip", b"2.2.2.2")]
    assert addresses.of_scope({"client": ("127.0.0.1", 1), "headers": headers}) == "127.0.0.1"


def test_an_ipv4_mapped_range_is_a_range_of_ipv4():
    addresses = ClientAddresses(["::ffff:10.0.0.0/104"])
    assert addresses.client("10.9.9.9", "1.1.1.1") == addresses.client("::ffff:10.9.9.9", "1.1.1.1") == "1.1.1.1"
    assert addresses.client("11.0.0.1", "1.1.1.1") == "11.0.0.1"


def test_several_header_lines_count_as_one_list():
    headers = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-real-ip", b"2.2.2.2"), (b"x-forwarded-for", b"1.1.1.1, 10.0.0.2")]
    assert PROXIES.of_scope({"client": ("10.0.0.1", 1), "headers": headers}) == "1.1.1.1"


@pytest.mark.parametrize("cidr", ["10.0.0.1/8", "all", "", "10.0.0.0/33"])
def test_a_bad_range_is_refused_at_start(cidr):
    with pytest.raises(BadSettings, match="TRUSTED_PROXIES"):
        ClientAddresses([cidr])
