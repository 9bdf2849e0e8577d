"""Passwords, hashed with Argon2id away from the event loop.

A hash takes 19 MiB and some 25 ms of a core, so at most a few run at once and a bounded number wait: a flood of logins
gets 503 at once instead of taking the whole process down.
"""

import asyncio
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from gatehouse.foundation.common_passwords import is_common
from gatehouse.foundation.errors import FieldFault, Unavailable, Unprocessable

MIN_CHARS: Final = 8
MAX_CHARS: Final = 1024

#: of the threads that hash: a core that is shared with them is a request's nine times out of ten
_NICENESS: Final = 10
#: From so many at once on it is a flood, and the threads rest between two hashes, this many times what the last took.
_FLOOD: Final = 8
_REST: Final = 4.0

_Result = TypeVar("_Result")


class TooManyLogins(Unavailable):
    code = "login_busy"
    message = "Too many sign-ins at once; try again in a moment."


class PasswordRefused(Unprocessable):
    """A new password cannot be this one. `field` is where it stands in the body."""

    def __init__(self, field: str = "password") -> None:
        super().__init__(faults=[FieldFault(field, self.message)])


class PasswordLength(PasswordRefused):
    message = f"A password has {MIN_CHARS} to {MAX_CHARS} characters."


class PasswordCommon(PasswordRefused):
    message = (
        "This password is among those that are tried first: it leaked often, or is made of your address or of this"
        " service's name. Choose another one."
    )


class Passwords:
    """One per process. `workers` hashes run at once, `waiting` more may queue. In a flood of sign-ins the threads rest
    between two hashes, so that it gets a share of a core and requests the others."""

    def __init__(self, *, workers: int = 2, waiting: int = 64) -> None:
        self._hasher = _hasher()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="passwords", initializer=_step_back)
        self._counting = threading.Lock()
        self._under_way = 0
        self._places = threading.BoundedSemaphore(workers + waiting)
        # Verified when there is no user, so that the time tells nobody which addresses exist.
        self._nobody = self._hasher.hash("nobody has this password")

    async def hash(self, password: str, *, about: str | None = None, field: str = "password") -> str:
        """Of a new password, for the account with the address `about`. Raises `PasswordLength`, `PasswordCommon`,
        `TooManyLogins`."""
        if not MIN_CHARS <= len(password) <= MAX_CHARS:
            raise PasswordLength(field)

        def checked() -> str:
            if is_common(password, about):
                raise PasswordCommon(field)
            return self._hasher.hash(_bytes(password))

        return await self._aside(checked)

    async def hash_again(self, password: str) -> str:
        """Of a password that is in use: rules for new ones do not apply to it. Raises `TooManyLogins`."""
        return await self._aside(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Whether this is the password. `hashed` is None for an unknown user, or one without a password: the work is
        the same and the answer no. Raises `TooManyLogins`."""
        return bool(await self.matching([hashed], password, checks=1))

    async def matching(self, hashes: Sequence[str | None], password: str, *, checks: int) -> list[int]:
        """The places of those hashes that are this password's. The work is that of `checks` hashes, however many there
        are; of more hashes than that, the first ones are tried. Raises `TooManyLogins`."""
        tried = _bytes(password[:MAX_CHARS])
        padded = [*hashes[:checks], *[None] * (checks - len(hashes))]
        right = await self._aside(lambda: [self._matches(hashed or self._nobody, tried) for hashed in padded])
        possible = len(password) <= MAX_CHARS
        return [place for place, fits in enumerate(right) if fits and possible and padded[place] is not None]

    def outdated(self, hashed: str) -> bool:
        """Whether a hash was made with other costs; hash anew at the next successful login."""
        return self._hasher.check_needs_rehash(hashed)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _matches(self, hashed: str, tried: bytes) -> bool:
        try:
            return self._hasher.verify(hashed, tried)
        except (VerificationError, InvalidHashError):
            return False

    async def _aside(self, work: Callable[[], _Result]) -> _Result:
        if not self._places.acquire(blocking=False):
            raise TooManyLogins(headers={"Retry-After": "1"})
        with self._counting:
            self._under_way += 1
        future = self._pool.submit(self._paced, work)
        # Given back when the thread is done, not when the caller has left: a client that hangs up frees no core.
        future.add_done_callback(lambda _: self._over())
        return await asyncio.wrap_future(future)

    def _paced(self, work: Callable[[], _Result]) -> _Result:
        began = time.thread_time()
        try:
            return work()
        finally:
            if self._under_way >= _FLOOD:
                time.sleep((time.thread_time() - began) * _REST)

    def _over(self) -> None:
        with self._counting:
            self._under_way -= 1
        self._places.release()


def _step_back() -> None:
    """This thread's work waits where the processors are wanted for requests. Linux has a niceness for each thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def check_new(password: str, *, about: str | None = None) -> None:
    """Raises `PasswordLength`, `PasswordCommon` for what may not become a password of the account `about`."""
    if not MIN_CHARS <= len(password) <= MAX_CHARS:
        raise PasswordLength
    if is_common(password, about):
        raise PasswordCommon


def hash_now(password: str, *, about: str | None = None) -> str:
    """For the command line, which has no loop to keep free. Raises `PasswordLength`, `PasswordCommon`."""
    check_new(password, about=about)
    return _hasher().hash(_bytes(password))


def matches_now(hashed: str, password: str) -> bool:
    """Whether this is the password of the hash. Blocks, as `hash_now` does."""
    try:
        return _hasher().verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)


def _bytes(password: str) -> bytes:
    """The same characters typed on another keyboard are the same password; a lone surrogate is no reason to fail."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
