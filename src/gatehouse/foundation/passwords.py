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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

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


class PasswordLength(Unprocessable):
    message = f"A password has {MIN_CHARS} to {MAX_CHARS} characters."


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

    async def hash(self, password: str) -> str:
        """Raises `PasswordLength`, `TooManyLogins`."""
        if not MIN_CHARS <= len(password) <= MAX_CHARS:
            raise PasswordLength(faults=[FieldFault("password", PasswordLength.message)])
        return await self._aside(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Whether this is the password. `hashed` is None for an unknown user, or one without a password: the work is
        the same and the answer no. Raises `TooManyLogins`."""
        possible = hashed is not None and len(password) <= MAX_CHARS
        tried = _bytes(password[:MAX_CHARS])
        right = await self._aside(lambda: self._matches(hashed or self._nobody, tried))
        return right and possible

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


def hash_now(password: str) -> str:
    """For the command line, which has no loop to keep free. Raises `PasswordLength`."""
    if not MIN_CHARS <= len(password) <= MAX_CHARS:
        raise PasswordLength(faults=[FieldFault("password", PasswordLength.message)])
    return _hasher().hash(_bytes(password))


def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)


def _bytes(password: str) -> bytes:
    """The same characters typed on another keyboard are the same password; a lone surrogate is no reason to fail."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
