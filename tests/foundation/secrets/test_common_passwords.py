"""Passwords that attackers try first are refused (NIST SP 800-63B)."""

import pytest

from gatehouse.foundation.secrets.common_passwords import is_common
from gatehouse.foundation.secrets.passwords import PasswordCommon, Passwords, hash_now

ADDRESS = "ada.lovelace@analytical-engines.example"


@pytest.mark.parametrize(
    "password",
    ["password", "Password1", "PASSW0RD", "qwerty123", "changeme", "\uff50assword", "gatehouse", "Gatehouse2026!",
     ADDRESS, "ada.lovelace", "Ada.Lovelace1", "analytical-engines", "analytical-engines.example"],
)  # fmt: skip
def test_a_password_that_attackers_try_first_is_common(password: str) -> None:
    assert is_common(password, ADDRESS)


@pytest.mark.parametrize("password", ["correct horse battery staple", "gatehouse keeps the gate", "x7#kQ-2mzp", ""])
def test_other_passwords_are_not_common(password: str) -> None:
    assert not is_common(password, ADDRESS)
    assert not is_common(password)


async def test_a_common_password_is_not_hashed_and_the_field_is_named() -> None:
    passwords = Passwords()
    try:
        with pytest.raises(PasswordCommon) as refused:
            await passwords.hash("Password1", field="new_password")
        assert [fault.field for fault in refused.value.faults] == ["new_password"]
        # An existing password is still accepted.
        assert await passwords.verify(await passwords.hash_again("Password1"), "Password1")
    finally:
        passwords.close()
    with pytest.raises(PasswordCommon):
        hash_now("ada.lovelace", about=ADDRESS)
