"""Schedules long work in threads fairly, between organizations and between the users of an organization.

Work is a generator that can be suspended at each `yield`. A thread takes the work of the organization and user that
have used the least time, runs it for a few milliseconds, and selects again. So a user with many long texts gets no more
than an equal share. Scanning holds the interpreter's lock, so all threads and the event loop take turns.
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

#: Work on a text of at most this many characters, or on a body of this many bytes, runs on the event loop without
#: steps.
LONG_TEXT_CHARACTERS: Final = 8 * 1024
#: Time that long work may take on the event loop. It is enough for most texts of 10,000 characters.
INLINE_WORK_SECONDS: Final = 0.001
#: Work on more characters or bytes than this does not begin on the event loop, because it would not end there, and a
#: step may be long.
MAX_INLINE_CHARACTERS: Final = 8 * LONG_TEXT_CHARACTERS
#: Time that work runs before the next work is selected.
TURN_SECONDS: Final = 0.003
#: Maximum number of units of work that may wait: of one user, of one organization, and in total.
MAX_WAITING_TURNS_PER_USER: Final = 16
MAX_WAITING_TURNS_PER_ORGANIZATION: Final = 64
MAX_WAITING_TURNS: Final = 512


class WorkOwner(NamedTuple):
    """The organization and the user that are charged for the work."""

    organization: Hashable
    user: Hashable


NO_OWNER: Final = WorkOwner(None, None)


class OverBudget(Exception):
    """Work exceeded its budget. `reason` is `timeout` or `work`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkBudget:
    """The limits of all work of one kind of one request: processor time, and elapsed time including waiting. Time
    between two units of work, such as the time of the provider, is not counted."""

    __slots__ = ("_started", "_timeout_seconds", "_work_seconds")

    def __init__(self, *, work_seconds: float, timeout_seconds: float) -> None:
        self._work_seconds = work_seconds
        self._timeout_seconds = timeout_seconds
        self._started: float | None = None

    def begin(self) -> None:
        """Start the elapsed time of a unit of work, before the work waits."""
        self._started = monotonic()

    def end(self) -> None:
        """Stop the elapsed time of the unit of work."""
        assert self._started is not None
        self._timeout_seconds -= monotonic() - self._started
        self._started = None

    @property
    def is_spent(self) -> bool:
        """Return whether the processor time is used up."""
        return self._work_seconds < 0

    def charge(self, seconds: float) -> None:
        """Subtract processor time. If more was used than remains, the next unit of work fails."""
        self._work_seconds -= seconds

    def spend(self, seconds: float) -> None:
        """Subtract processor time. Raises `OverBudget` if none remains, or if the work took too long."""
        self._work_seconds -= seconds
        if self._work_seconds < 0:
            raise OverBudget("work")
        started = self._started
        if started is not None and monotonic() - started > self._timeout_seconds:
            raise OverBudget("timeout")


class FairScheduler:
    """Runs long work for one or several event loops. `threads` may be changed while no work waits."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._lock = threading.Lock()
        self._organizations: dict[Hashable, _Organization] = {}
        self._waiting = 0
        self._running_threads = 0
        self._pool: ThreadPoolExecutor | None = None

    @property
    def waiting(self) -> int:
        """Return the number of unfinished units of work."""
        return self._waiting

    async def run(self, owner: WorkOwner, steps: Steps[T], budget: WorkBudget | None = None, *, size: int = 0) -> T:
        """Return the result of `steps`. Short work runs on the event loop. Longer work begins there and continues in a
        thread. `size` is the size of the work in characters or bytes.

        Raises the errors of the steps, `OverBudget`, and `DlpUnavailable` if too much work waits. Cancelled work ends
        at its next step."""
        started = thread_time()
        try:
            while size < MAX_INLINE_CHARACTERS and thread_time() - started < INLINE_WORK_SECONDS:
                next(steps)
        except StopIteration as stop:
            early_result: T = stop.value
            return early_result
        finally:
            # This time is charged too, because many texts of medium size together take long.
            if budget is not None:
                budget.charge(thread_time() - started)
        job = _Job(owner, steps, budget, asyncio.get_running_loop())
        with self._queued(job):
            result: T = await job.result
            return result

    @contextmanager
    def _queued(self, job: "_Job") -> Iterator[None]:
        organization_id, user_id = job.owner
        with self._lock:
            organization_work = self._organizations.get(organization_id) or _Organization(
                _least_used(self._organizations.values())
            )
            user_work = organization_work.users.get(user_id) or _User(_least_used(organization_work.users.values()))
            if (
                self._waiting >= MAX_WAITING_TURNS
                or organization_work.waiting >= MAX_WAITING_TURNS_PER_ORGANIZATION
                or user_work.waiting >= MAX_WAITING_TURNS_PER_USER
            ):
                raise DlpUnavailable(
                    "Too many long texts wait for inspection. Try again later.", headers={"Retry-After": "5"}
                )
            self._organizations[organization_id] = organization_work
            organization_work.users[user_id] = user_work
            self._waiting += 1
            organization_work.waiting += 1
            user_work.waiting += 1
            user_work.jobs.append(job)
            needs_thread = self._running_threads < self.threads
            self._running_threads += needs_thread
        if job.budget is not None:
            job.budget.begin()
        if needs_thread:
            self._start()
        try:
            yield
        finally:
            job.is_abandoned = True
            if job.budget is not None:
                job.budget.end()
            with self._lock:
                self._waiting -= 1
                organization_work.waiting -= 1
                user_work.waiting -= 1
                if job in user_work.jobs:
                    user_work.jobs.remove(job)
                    self._forget_idle(job.owner)

    def _start(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(thread_name_prefix="long-texts")
        self._pool.submit(self._run_thread)

    def _run_thread(self) -> None:
        """Run waiting work until none is left."""
        job: _Job | None = None
        seconds = 0.0
        while True:
            with self._lock:
                if job is not None:
                    self._add_time(job, seconds)
                job = self._next()
                if job is None:
                    self._running_threads -= 1
                    return
            seconds = job.turn()

    def _next(self) -> "_Job | None":
        """Remove and return the next work: that of the organization that has used the least time and, within it, of the
        user who has used the least time."""
        ready = [
            organization
            for organization in self._organizations.values()
            if any(user.jobs for user in organization.users.values())
        ]
        if not ready:
            return None
        selected_organization = min(ready, key=_used_seconds)
        selected_user = min((user for user in selected_organization.users.values() if user.jobs), key=_used_seconds)
        selected_user.running += 1
        return selected_user.jobs.popleft()

    def _add_time(self, job: "_Job", seconds: float) -> None:
        organization = self._organizations[job.owner.organization]
        user = organization.users[job.owner.user]
        organization.used_seconds += seconds
        user.used_seconds += seconds
        user.running -= 1
        if not job.is_over:
            user.jobs.appendleft(job)
        self._forget_idle(job.owner)

    def _forget_idle(self, owner: WorkOwner) -> None:
        organization = self._organizations[owner.organization]
        user = organization.users[owner.user]
        if not user.jobs and not user.running:
            del organization.users[owner.user]
        if not organization.users:
            del self._organizations[owner.organization]


class _User:
    """The work of one user. `used_seconds` begins at the lowest value of the organization's other users."""

    __slots__ = ("jobs", "running", "used_seconds", "waiting")

    def __init__(self, used_seconds: float) -> None:
        self.used_seconds = used_seconds
        self.jobs: deque[_Job] = deque()
        self.running = 0
        self.waiting = 0


class _Organization:
    """The work of one organization. `used_seconds` begins at the lowest value of the other organizations."""

    __slots__ = ("used_seconds", "users", "waiting")

    def __init__(self, used_seconds: float) -> None:
        self.used_seconds = used_seconds
        self.users: dict[Hashable, _User] = {}
        self.waiting = 0


class _Job:
    """One unit of work with its owner, budget and result."""

    __slots__ = ("_loop", "_steps", "budget", "is_abandoned", "is_over", "owner", "result")

    def __init__(
        self, owner: WorkOwner, steps: Steps[Any], budget: WorkBudget | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.owner = owner
        self.budget = budget
        self.result: asyncio.Future[Any] = loop.create_future()
        #: whether the caller was cancelled, or has the result already
        self.is_abandoned = False
        self.is_over = False
        self._steps = steps
        self._loop = loop

    def turn(self) -> float:
        """Run steps for `TURN_SECONDS`. Returns the seconds that the steps took."""
        started = last = thread_time()
        try:
            while not self.is_abandoned:
                next(self._steps)
                now = thread_time()
                if self.budget is not None:
                    self.budget.spend(now - last)
                last = now
                if now - started >= TURN_SECONDS:
                    return now - started
            self._steps.close()
            self.is_over = True
        except StopIteration as stop:
            self._end(self._set_result, stop.value)
        except BaseException as error:
            self._steps.close()
            self._end(self._set_error, error)
        return thread_time() - started

    def _end(self, set_outcome: Any, outcome: Any) -> None:
        self.is_over = True
        # If the loop is closed, the caller no longer waits for the outcome.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(set_outcome, outcome)

    def _set_result(self, result: Any) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def _set_error(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)


def _used_seconds(work: _Organization | _User) -> float:
    return work.used_seconds


def _least_used(works: Any) -> float:
    return min(map(_used_seconds, works), default=0.0)


#: The scheduler of the process. There is one, because all threads of a process share one interpreter lock.
SCHEDULER: Final = FairScheduler()
