import asyncio

import pytest

from gatehouse.foundation.secrets.passwords import PasswordLength, Passwords, TooManyLogins

pytestmark = pytest.mark.usefixtures("real_password_hashes")


@pytest.fixture(scope="module")
def passwords():
    hasher = Passwords()
    yield hasher
    hasher.close()


async def test_the_right_password_is_recognised_and_others_are_not(passwords):
    hashed = await passwords.hash("correct horse")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert await passwords.verify(hashed, "correct horse")
    assert not await passwords.verify(hashed, "correct horsf")
    assert not await passwords.verify(hashed, "")
    assert not passwords.outdated(hashed)


async def test_two_hashes_of_one_password_differ(passwords):
    assert await passwords.hash("correct horse") != await passwords.hash("correct horse")


async def test_a_verification_is_also_done_for_an_unknown_user(passwords, monkeypatch):
    seen = []
    matches = passwords._matches
    monkeypatch.setattr(passwords, "_matches", lambda hashed, tried: seen.append(hashed) or matches(hashed, tried))
    assert not await passwords.verify(None, "nobody has this password")
    assert seen == [passwords._dummy_hash]


@pytest.mark.parametrize("password", ["", "seven77", "x" * 1025])
async def test_a_password_of_another_length_is_refused_naming_the_field(passwords, password):
    with pytest.raises(PasswordLength) as caught:
        await passwords.hash(password)
    assert [fault.field for fault in caught.value.faults] == ["password"]
    assert "seven77" not in str(caught.value)


async def test_a_long_password_does_not_match_its_beginning(passwords):
    hashed = await passwords.hash("x" * 1024)
    assert await passwords.verify(hashed, "x" * 1024)
    assert not await passwords.verify(hashed, "x" * 1025)


async def test_a_password_does_not_depend_on_its_unicode_form(passwords):
    hashed = await passwords.hash("pässwörter")
    assert await passwords.verify(hashed, "pa\u0308sswo\u0308rter")


@pytest.mark.parametrize("password", ["\ud800" * 8, "\x00" * 8, "\U0010ffff" * 8])
async def test_unusual_characters_are_accepted(passwords, password):
    assert await passwords.verify(await passwords.hash(password), password)


@pytest.mark.parametrize(
    "hashed", ["", "x", "$argon2id$", "$2b$12$abcdefghijklmnopqrstuv", "$argon2id$v=19$m=19456,t=2,p=1$AA$AA"]
)
async def test_a_broken_hash_matches_nothing(passwords, hashed):
    assert not await passwords.verify(hashed, "correct horse")


async def test_a_flood_of_sign_ins_is_refused_and_a_later_sign_in_works():
    small = Passwords(workers=1, waiting=1)
    try:
        outcomes = await asyncio.gather(*(small.verify(None, "x" * 8) for _ in range(10)), return_exceptions=True)
        assert outcomes[:2] == [False, False]
        assert all(isinstance(outcome, TooManyLogins) for outcome in outcomes[2:])
        assert await small.verify(await small.hash("correct horse"), "correct horse")
    finally:
        small.close()


async def test_in_a_flood_the_threads_pause_between_two_hashes(monkeypatch):
    naps = []
    monkeypatch.setattr("gatehouse.foundation.secrets.passwords.time.sleep", naps.append)
    small = Passwords(workers=1, waiting=20)
    try:
        await small.verify(None, "x" * 8)
        assert naps == []
        await asyncio.gather(*(small.verify(None, "x" * 8) for _ in range(15)))
        # The threads do not pause for the last seven hashes, because so few are not a flood.
        assert len(naps) == 8
        assert all(nap > 0 for nap in naps)
    finally:
        small.close()


async def test_the_place_of_a_cancelled_client_is_free_when_its_hash_is_done():
    small = Passwords(workers=1, waiting=0)
    try:
        task = asyncio.create_task(small.verify(None, "x" * 8))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(200):
            try:
                assert not await small.verify(None, "x" * 8)
                break
            except TooManyLogins:
                await asyncio.sleep(0.01)
        else:
            pytest.fail("the place was never given back")
    finally:
        small.close()
