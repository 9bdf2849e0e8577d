import numpy as np
import pytest

from gatehouse.detection.semantic import ngrams

IDS = np.array([7, 8, 9, 7, 8, 9], dtype=np.int64)


def test_equal_runs_fall_into_one_bucket_wherever_they_begin() -> None:
    bucket_ids = ngrams.buckets(IDS, 2**15)
    assert (bucket_ids[:, 0] == bucket_ids[:, 3]).all()


def test_order_and_length_of_a_run_matter() -> None:
    forward, backward = (ngrams.buckets(np.array(ids, dtype=np.int64), 2**20) for ids in ([7, 8, 9], [9, 8, 7]))
    assert forward[2, 0] != backward[2, 0]
    assert len({int(forward[length, 0]) for length in range(3)}) == 3


def test_buckets_do_not_change_from_run_to_run() -> None:
    """The buckets are part of the trained weights."""
    assert ngrams.buckets(IDS[:3], 2**15).tolist() == [[15309, 29511, 10945], [2249, 18665, -1], [28047, -1, -1]]


def test_a_run_that_the_text_does_not_finish_has_no_bucket() -> None:
    assert (ngrams.buckets(IDS, 2**15) == -1).sum(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [0, 1, 2])
def test_texts_shorter_than_the_longest_run(size: int) -> None:
    bucket_ids = ngrams.buckets(IDS[:size], 2**15)
    assert bucket_ids.shape == (3, size)
    used, values = ngrams.distinct(bucket_ids)
    assert len(used) == len(values) == [0, 1, 3][size]


def test_each_run_counts_once_and_all_together_one() -> None:
    used, values = ngrams.distinct(ngrams.buckets(IDS, 2**15))
    assert len(set(used.tolist())) == len(used)
    assert np.isclose((values**2).sum(), 1)
