import hashlib

import pytest
from tests.support.api_keys import looks_like_api_key

from gatehouse.foundation.secrets import tokens


def test_an_api_key_has_its_form_and_its_digest():
    minted = tokens.mint_api_key()
    assert minted.plaintext.startswith("gk_")
    assert len(minted.plaintext) == 3 + 32 + 6
    assert minted.shown == minted.plaintext[:8]
    assert minted.digest == hashlib.sha256(minted.plaintext.encode()).digest()
    assert looks_like_api_key(minted.plaintext)


def test_a_minted_credential_does_not_show_itself():
    minted = tokens.mint_api_key()
    assert minted.plaintext not in repr(minted)


def test_minted_keys_are_unique():
    assert len({tokens.mint_api_key().plaintext for _ in range(1000)}) == 1000


KEY = "gk_" + "0" * 32
GOOD = KEY + tokens._checksum(KEY)


def test_the_checksum_is_the_same_in_every_version():
    # Issued keys must stay valid, so this value must never change.
    assert GOOD == "gk_000000000000000000000000000000001ojHud"


@pytest.mark.parametrize("position", range(3, 41))
def test_a_mistyped_key_is_detected_by_its_checksum(position):
    mistyped = GOOD[:position] + ("0" if GOOD[position] != "0" else "1") + GOOD[position + 1 :]
    assert looks_like_api_key(GOOD)
    assert not looks_like_api_key(mistyped)


def test_tokens_carry_their_prefix_and_256_bits():
    minted = tokens.mint_token("inv_")
    assert minted.plaintext.startswith("inv_")
    assert len(minted.plaintext) == 4 + 43
    assert tokens.digest(minted.plaintext) == minted.digest


@pytest.mark.parametrize("text", ["", "é", "\ud800", "\x00"])
def test_every_text_has_a_digest(text):
    assert len(tokens.digest(text)) == 32
