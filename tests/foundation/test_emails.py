"""E-mail addresses are normalized, and validated only by their syntax."""

import pytest

from gatehouse.foundation import emails


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("Ada@Example.COM", "ada@example.com"),
        ("admin@gatehouse.local", "admin@gatehouse.local"),
        ("a+b@sub.example.test", "a+b@sub.example.test"),
        ("u\u0308@example.com", "\u00fc@example.com"),
    ],
)
def test_an_address_is_normalized(address: str, normal: str) -> None:
    assert emails.normalize(address) == normal
    assert emails.normalize(normal) == normal


@pytest.mark.parametrize(
    "address",
    ["", "ada", "ada@", "@example.com", "a b@example.com", "a@b..c", "a@localhost", "a@[10.0.0.1]", "a\0@b.test",
     '"a b"@example.com', "Ada <ada@example.com>", "a" * 250 + "@example.com", "a@example.com\nBcc: b@example.com"],
)  # fmt: skip
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError):
        emails.normalize(address)


@pytest.mark.parametrize(("address", "domain"), [("a@B.test", "b.test"), ("a@b@c.test", "c.test"), ("ada", "")])
def test_the_domain_is_what_follows_the_last_at_sign(address: str, domain: str) -> None:
    assert emails.domain(address) == domain
