"""Long work beside the event loop, in turns that are fair between organizations and, within one, between its users.

Work is a generator: each `yield` is a place where it may wait for others. A thread runs the work of whoever has used
the least time so far for some milliseconds, and looks again. A neighbour with many long texts thus takes no more than
an equal share, however many they are. Scanning holds the interpreter's lock: more threads than one share its time
between them and the event loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import monotonic, thread_time
from typing import Any, Final, NamedTuple

from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.steps import Steps, T

#: Characters of a text, or bytes of a body, up to which work is done at once on the event loop.
LONG_TEXT_SIZE: Final = 8 * 1024
#: What long work may take on the event loop: most texts of 10,000 characters are done in that time.
INLINE_WORK_SECONDS: Final = 0.001
#: Characters or bytes of work that is not begun on the event loop: it would not end there, and one step may be long.
MAX_INLINE_SIZE: Final = 8 * LONG_TEXT_SIZE
#: How long work runs before it is looked whose turn is next.
TURN_SECONDS: Final = 0.003
#: Pieces of work that wait at most: a user's, an organization's, all together.
MAX_WAITING_PER_USER: Final = 16
MAX_WAITING_PER_ORGANIZATION: Final = 64
MAX_WAITING: Final = 512


class Owner(NamedTuple):
    """Whose work it is."""

    organization: Hashable
    user: Hashable


NO_OWNER: Final = Owner(None, None)


class OverBudget(Exception):
    """Work took more than its budget allows. `reason` is `timeout` or `work`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkBudget:
    """What all work of one kind of one request may take: seconds of a processor, and of waiting for turns and working
    together. Between two pieces of work no time goes by: the provider may take as long as it likes."""

    __slots__ = ("_began", "_timeout_seconds", "_work_seconds")

    def __init__(self, *, work_seconds: float, timeout_seconds: float) -> None:
        self._work_seconds = work_seconds
        self._timeout_seconds = timeout_seconds
        self._began: float | None = None

    def begin(self) -> None:
        """A piece of work waits for its turn, or begins."""
        self._began = monotonic()

    def end(self) -> None:
        """It is over."""
        assert self._began is not None
        self._timeout_seconds -= monotonic() - self._began
        self._began = None

    @property
    def is_spent(self) -> bool:
        """Whether no processor time is left."""
        return self._work_seconds < 0

    def charge(self, seconds: float) -> None:
        """Takes processor time off; more than is left makes the next piece of work fail."""
        self._work_seconds -= seconds

    def spend(self, seconds: float) -> None:
        """The same. Raises `OverBudget` where none is left, or the work took too long."""
        self._work_seconds -= seconds
        if self._work_seconds < 0:
            raise OverBudget("work")
        began = self._began
        if began is not None and monotonic() - began > self._timeout_seconds:
            raise OverBudget("timeout")


class FairScheduler:
    """One event loop's or several. `threads` may be changed while nothing waits."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._lock = threading.Lock()
        self._organizations: dict[Hashable, _Organization] = {}
        self._waiting = 0
        self._serving = 0
        self._pool: ThreadPoolExecutor | None = None

    @property
    def waiting(self) -> int:
        """Pieces of work that are not done."""
        return self._waiting

    async def run(self, owner: Owner, steps: Steps[T], budget: WorkBudget | None = None, *, size: int = 0) -> T:
        """The result of `steps`: on the event loop what a millisecond or so suffices for, the rest in its turns. `size`
        is what they work on, in characters or bytes.

        Raises what the steps raise, `OverBudget`, and `DlpUnavailable` where too many wait. Work that nobody waits for
        any more ends at its next step."""
        began = thread_time()
        try:
            while size < MAX_INLINE_SIZE and thread_time() - began < INLINE_WORK_SECONDS:
                next(steps)
        except StopIteration as stopped:
            done: T = stopped.value
            return done
        job = _Job(owner, steps, budget, asyncio.get_running_loop())
        with self._admitted(job):
            result: T = await job.result
            return result

    @contextmanager
    def _admitted(self, job: "_Job") -> Iterator[None]:
        organization, user = job.owner
        with self._lock:
            share = self._organizations.get(organization) or _Organization(_least(self._organizations.values()))
            line = share.users.get(user) or _User(_least(share.users.values()))
            if (
                self._waiting >= MAX_WAITING
                or share.waiting >= MAX_WAITING_PER_ORGANIZATION
                or line.waiting >= MAX_WAITING_PER_USER
            ):
                raise DlpUnavailable(
                    "Too many long texts wait for inspection. Try again.", headers={"Retry-After": "5"}
                )
            self._organizations[organization] = share
            share.users[user] = line
            self._waiting += 1
            share.waiting += 1
            line.waiting += 1
            line.jobs.append(job)
            idle = self._serving < self.threads
            self._serving += idle
        if job.budget is not None:
            job.budget.begin()
        if idle:
            self._start()
        try:
            yield
        finally:
            job.unwanted = True
            if job.budget is not None:
                job.budget.end()
            with self._lock:
                self._waiting -= 1
                share.waiting -= 1
                line.waiting -= 1
                if job in line.jobs:
                    line.jobs.remove(job)
                    self._forget_idle(job.owner)

    def _start(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(thread_name_prefix="long-texts")
        self._pool.submit(self._serve)

    def _serve(self) -> None:
        """Until nothing waits."""
        job: _Job | None = None
        seconds = 0.0
        while True:
            with self._lock:
                if job is not None:
                    self._account(job, seconds)
                job = self._next()
                if job is None:
                    self._serving -= 1
                    return
            seconds = job.turn()

    def _next(self) -> "_Job | None":
        """Taken from its line: whose organization has used the least, and in it whose user."""
        ready = [each for each in self._organizations.values() if any(user.jobs for user in each.users.values())]
        if not ready:
            return None
        share = min(ready, key=_used)
        line = min((user for user in share.users.values() if user.jobs), key=_used)
        line.running += 1
        return line.jobs.popleft()

    def _account(self, job: "_Job", seconds: float) -> None:
        share = self._organizations[job.owner.organization]
        line = share.users[job.owner.user]
        share.used += seconds
        line.used += seconds
        line.running -= 1
        if not job.over:
            line.jobs.appendleft(job)
        self._forget_idle(job.owner)

    def _forget_idle(self, owner: Owner) -> None:
        share = self._organizations[owner.organization]
        line = share.users[owner.user]
        if not line.jobs and not line.running:
            del share.users[owner.user]
        if not share.users:
            del self._organizations[owner.organization]


class _User:
    """`used`: seconds, on a scale that begins where the least of the others is."""

    __slots__ = ("jobs", "running", "used", "waiting")

    def __init__(self, used: float) -> None:
        self.used = used
        self.jobs: deque[_Job] = deque()
        self.running = 0
        self.waiting = 0


class _Organization:
    __slots__ = ("used", "users", "waiting")

    def __init__(self, used: float) -> None:
        self.used = used
        self.users: dict[Hashable, _User] = {}
        self.waiting = 0


class _Job:
    __slots__ = ("_loop", "_steps", "budget", "over", "owner", "result", "unwanted")

    def __init__(
        self, owner: Owner, steps: Steps[Any], budget: WorkBudget | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.owner = owner
        self.budget = budget
        self.result: asyncio.Future[Any] = loop.create_future()
        #: nobody waits for the result any more
        self.unwanted = False
        self.over = False
        self._steps = steps
        self._loop = loop

    def turn(self) -> float:
        """Works for a turn; how many seconds it took."""
        began = last = thread_time()
        try:
            while not self.unwanted:
                next(self._steps)
                now = thread_time()
                if self.budget is not None:
                    self.budget.spend(now - last)
                last = now
                if now - began >= TURN_SECONDS:
                    return now - began
            self._steps.close()
            self.over = True
        except StopIteration as stopped:
            self._end(self._set_result, stopped.value)
        except BaseException as error:
            self._steps.close()
            self._end(self._set_error, error)
        return thread_time() - began

    def _end(self, set_outcome: Any, outcome: Any) -> None:
        self.over = True
        # The loop may be closed: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(set_outcome, outcome)

    def _set_result(self, result: Any) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def _set_error(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)


def _used(share: _Organization | _User) -> float:
    return share.used


def _least(shares: Any) -> float:
    return min(map(_used, shares), default=0.0)


#: The process's: its threads share one interpreter lock.
SCHEDULER: Final = FairScheduler()
