import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.foundation.secrets import ecies
from gatehouse.foundation.secrets.ecies import CannotDecrypt

KEY, ANOTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
CONTEXT = b"outpost-1/provider-7"
SEALED = ecies.seal(b"sk-verysecret", KEY.public_key(), context=CONTEXT)


def recoded(sealed: str, change: int) -> str:
    """Returns the text with one changed bit in the byte at `change`."""
    raw = bytearray(urlsafe_b64decode(sealed.partition(".")[2]))
    raw[change] ^= 1
    return f"e1.{urlsafe_b64encode(raw).decode()}"


@given(st.binary(max_size=300), st.binary(max_size=50))
def test_a_sealed_text_opens_with_its_key_in_its_context(plaintext: bytes, context: bytes) -> None:
    assert ecies.unseal(ecies.seal(plaintext, KEY.public_key(), context=context), KEY, context=context) == plaintext


def test_the_same_text_seals_differently_each_time() -> None:
    assert len({ecies.seal(b"x", KEY.public_key(), context=b"") for _ in range(20)}) == 20


def test_another_key_or_context_does_not_open_it() -> None:
    for key, context in ((ANOTHER, CONTEXT), (KEY, b"outpost-2/provider-7"), (KEY, b"")):
        with pytest.raises(CannotDecrypt):
            ecies.unseal(SEALED, key, context=context)
    with pytest.raises(CannotDecrypt):
        ecies.unseal(SEALED, ec.generate_private_key(ec.SECP384R1()), context=CONTEXT)


@pytest.mark.parametrize("change", [0, 1, 33, 64, 65, 70, -1])
def test_a_changed_text_does_not_open(change: int) -> None:
    with pytest.raises(CannotDecrypt):
        ecies.unseal(recoded(SEALED, change), KEY, context=CONTEXT)


@pytest.mark.parametrize("sealed", ["", "e1", "e1.", "e1.AAAA", "e1.***", "e1.é", "v1" + SEALED[2:], SEALED[:-8]])
def test_another_text_does_not_open(sealed: str) -> None:
    with pytest.raises(CannotDecrypt) as raised:
        ecies.unseal(sealed, KEY, context=CONTEXT)
    assert not re.search(r"verysecret", str(raised.value))


def test_each_key_has_its_own_fingerprint() -> None:
    assert ecies.fingerprint(KEY.public_key()) == ecies.fingerprint(KEY.public_key())
    assert ecies.fingerprint(KEY.public_key()) != ecies.fingerprint(ANOTHER.public_key())
