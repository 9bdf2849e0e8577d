"""Samples in progress when the process stops. tests/platform/governance/test_dlp_samples.py tests what is stored."""

import asyncio

import pytest
import structlog

from gatehouse.engine.stages.calls import sampling


def in_progress(seconds: float) -> asyncio.Task[None]:
    task = asyncio.create_task(asyncio.sleep(seconds))
    sampling.RUNNING.add(task)
    task.add_done_callback(sampling.RUNNING.discard)
    return task


async def test_a_stop_waits_for_the_samples_in_progress() -> None:
    tasks = [in_progress(seconds) for seconds in (0.01, 0.05)]
    await sampling.wait()
    assert [(task.done(), task.cancelled()) for task in tasks] == [(True, False)] * 2
    # Without samples, it returns at once.
    await sampling.wait()


async def test_samples_that_take_too_long_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_STOP_TIMEOUT_SECONDS", 0.05)
    done, endless = in_progress(0), in_progress(3600)
    with structlog.testing.capture_logs() as logs:
        await sampling.wait()
    assert (done.cancelled(), endless.cancelled()) == (False, True)
    assert [(entry["event"], entry["samples"]) for entry in logs] == [("sampling.dropped", 1)]
