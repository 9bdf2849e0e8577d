"""The values that settings accept."""

import pytest

from gatehouse.foundation.settings import BadSettings, Settings


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("https://gatehouse.example.com", "https://gatehouse.example.com"),
        ("https://gatehouse.example.com/", "https://gatehouse.example.com"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_public_address_is_scheme_host_and_port(address: str, read: str) -> None:
    assert Settings.from_environment({"PUBLIC_URL": address}).public_url == read


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/gatehouse", "gatehouse.example.com", "ftp://example.com", "https://", "https://a@example.com",
        "https://example.com:x", "https://example.com/?a=b", "https://example.com/#a",
    ],
)  # fmt: skip
def test_another_address_is_refused_at_the_start(address: str) -> None:
    with pytest.raises(BadSettings, match="PUBLIC_URL"):
        Settings.from_environment({"PUBLIC_URL": address})
