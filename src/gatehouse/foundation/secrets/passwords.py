"""Hashes passwords with Argon2id in threads.

A hash takes 19 MiB and about 25 ms of a core. So only a few hashes run at a time, and a bounded number waits. In a
flood of sign-ins, further ones are refused with a 503 immediately, and the process continues to serve requests.
"""

import time
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from gatehouse.foundation.errors import FieldFault, Unavailable, Unprocessable
from gatehouse.foundation.secrets.common_passwords import is_common
from gatehouse.foundation.tasks import BoundedThreadPool

MIN_PASSWORD_CHARACTERS: Final = 8
MAX_PASSWORD_CHARACTERS: Final = 1024

#: nice value of the hashing threads; with it, requests get nine tenths of a core that they share with these threads
_NICENESS: Final = 10
#: the threads pause between two hashes if at least this number of hashes run or wait
_FLOOD_HASHES: Final = 8
#: length of the pause as a multiple of the processor time of the last hash
_PAUSE_FACTOR: Final = 4.0

_Result = TypeVar("_Result")


class TooManyLogins(Unavailable):
    code = "login_busy"
    message = "Too many sign-ins at once; try again in a moment."


class PasswordRefused(Unprocessable):
    """A new password is refused. `field` is the name of the password's field in the body."""

    def __init__(self, field: str = "password") -> None:
        super().__init__(faults=[FieldFault(field, self.message)])


class PasswordLength(PasswordRefused):
    message = f"A password has {MIN_PASSWORD_CHARACTERS} to {MAX_PASSWORD_CHARACTERS} characters."


class PasswordCommon(PasswordRefused):
    message = (
        "This password is too easy to guess: it is a common password, or is made of your address or of this service's"
        " name. Choose another one."
    )


class Passwords:
    """Hashes and verifies passwords. A process has one instance. Up to `workers` hashes run at a time, and up to
    `waiting` more may wait. In a flood of sign-ins the threads pause between two hashes, so that hashing leaves
    processor time for requests."""

    def __init__(self, *, workers: int = 2, waiting: int = 64) -> None:
        self._hasher = _hasher()
        self._pool = BoundedThreadPool(
            "passwords", threads=workers, max_waiting=waiting, busy=TooManyLogins, niceness=_NICENESS
        )
        # This hash is verified for unknown users, so that the response time does not show which addresses exist.
        self._dummy_hash = self._hasher.hash("nobody has this password")

    async def hash(self, password: str, *, about: str | None = None, field: str = "password") -> str:
        """Returns the hash of a new password for the account with the address `about`. Raises `PasswordLength`,
        `PasswordCommon`, `TooManyLogins`."""
        if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
            raise PasswordLength(field)

        def check_and_hash() -> str:
            if is_common(password, about):
                raise PasswordCommon(field)
            return self._hasher.hash(_bytes(password))

        return await self._run_in_thread(check_and_hash)

    async def hash_again(self, password: str) -> str:
        """Returns a new hash of an existing password. The rules for new passwords do not apply. Raises
        `TooManyLogins`."""
        return await self._run_in_thread(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Returns whether the password matches. `hashed` is None for an unknown user, or a user without a password.
        Then the same work is done and the result is False. Raises `TooManyLogins`."""
        return bool(await self.matching([hashed], password, checks=1))

    async def matching(self, hashes: Sequence[str | None], password: str, *, checks: int) -> list[int]:
        """Returns the indexes of the hashes that match the password. Always does the work of `checks` hashes. Only the
        first `checks` hashes are compared. Raises `TooManyLogins`."""
        candidate = _bytes(password[:MAX_PASSWORD_CHARACTERS])
        padded = [*hashes[:checks], *[None] * (checks - len(hashes))]
        matches = await self._run_in_thread(
            lambda: [self._matches(hashed or self._dummy_hash, candidate) for hashed in padded]
        )
        possible = len(password) <= MAX_PASSWORD_CHARACTERS
        return [index for index, match in enumerate(matches) if match and possible and padded[index] is not None]

    def outdated(self, hashed: str) -> bool:
        """Returns whether a hash has other cost parameters than new hashes. The caller replaces such a hash at the next
        successful sign-in."""
        return self._hasher.check_needs_rehash(hashed)

    def close(self) -> None:
        self._pool.close()

    def _matches(self, hashed: str, candidate: bytes) -> bool:
        try:
            return self._hasher.verify(hashed, candidate)
        except (VerificationError, InvalidHashError):
            return False

    async def _run_in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await self._pool.run(partial(self._run_paced, work))

    def _run_paced(self, work: Callable[[], _Result]) -> _Result:
        started = time.thread_time()
        try:
            return work()
        finally:
            if self._pool.pending >= _FLOOD_HASHES:
                time.sleep((time.thread_time() - started) * _PAUSE_FACTOR)


def check_new(password: str, *, about: str | None = None) -> None:
    """Checks a new password of the account with the address `about`. Raises `PasswordLength`, `PasswordCommon`."""
    if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
        raise PasswordLength
    if is_common(password, about):
        raise PasswordCommon


def hash_now(password: str, *, about: str | None = None) -> str:
    """Returns the hash of a new password. Blocks, so it is only for the command line. Raises `PasswordLength`,
    `PasswordCommon`."""
    check_new(password, about=about)
    return _hasher().hash(_bytes(password))


def matches_now(hashed: str, password: str) -> bool:
    """Returns whether the password matches the hash. Blocks, so it is only for the command line."""
    try:
        return _hasher().verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)


def _bytes(password: str) -> bytes:
    """Returns the bytes to hash. The password is normalized, so that it does not depend on the keyboard. Lone
    surrogates are accepted."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
