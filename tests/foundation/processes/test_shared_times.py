"""Times that forked processes share."""

import os

from hypothesis import given
from hypothesis import strategies as st

from gatehouse.foundation.processes.shared_times import SharedTimes

KEYS = st.binary(max_size=8)


def test_a_forked_process_sees_the_times_of_the_other_and_the_reverse() -> None:
    times = SharedTimes()
    times.put(b"before", 5)
    child = os.fork()
    if child == 0:
        times.put(b"of the child", times.get(b"before") + 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert times.get(b"of the child") == 7
    assert times.get(b"unknown") == 0
    assert (times.any_after(6), times.any_after(7)) == (True, False)


@given(st.lists(st.tuples(KEYS, st.integers(1, 10**18)), max_size=50))
def test_few_times_are_stored_as_in_a_dictionary(changes: list[tuple[bytes, int]]) -> None:
    times, expected = SharedTimes(), dict[bytes, int]()
    for key, time in changes:
        times.put(key, time)
        expected[key] = time
    assert {key: times.get(key) for key in expected} == expected
    assert times.any_after(max((time for _, time in changes), default=0)) is False


def test_a_time_in_the_future_replaces_one_in_the_past() -> None:
    times = SharedTimes()
    for number in range(20_000):
        times.put(b"past %d" % number, 1)
    future = [b"future %d" % number for number in range(1_000)]
    for key in future:
        times.put(key, 2)
    assert sum(times.get(key) == 2 for key in future) > 990
