"""When a written record is treated as stored."""

import errno
from pathlib import Path

import pytest

from gatehouse.foundation.journal.files import segment_path
from gatehouse.foundation.journal.segments import Segments


@pytest.mark.parametrize("fsync", [True, False])
def test_with_fsync_only_synced_records_are_confirmed(tmp_path: Path, fsync: bool) -> None:
    segments = Segments(tmp_path, fsync=fsync, segment_bytes=1)
    assert segments.commit([b"first"]) == (1, None)
    # The descriptor accepts writes, but the system cannot sync it.
    segment_path(tmp_path / str(segments.writer_id), 2).symlink_to("/dev/null")
    stored, error = segments.commit([b"second"])
    if fsync:
        assert error is not None
        assert (stored, error.errno) == (0, errno.EINVAL)
    else:
        assert (stored, error) == (1, None)
    # The next record is written to a segment that can be synced.
    assert segments.commit([b"third"]) == (1, None)
    segments.close()
