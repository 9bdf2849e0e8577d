"""Limits on an organization's files and batches are respected by concurrent requests."""

import asyncio

import pytest
from tests.platform.batches.conftest import occupied
from tests.platform.batches.test_message_batches import request
from tests.support.platform import RunningPlatform, Tenant

_PARALLEL_REQUESTS = 6
_STATUSES = [200] + [409] * (_PARALLEL_REQUESTS - 1)
_ROOM = "gatehouse.platform.batches.storage.room"


async def test_files_uploaded_together_stay_within_the_limit(owner: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_ROOM}.MAX_FILES", 1)
    files = {"file": ("a.jsonl", b"{}")}
    uploads = (
        owner.user.client.post("/v1/files", data={"purpose": "batch"}, files=files) for _ in range(_PARALLEL_REQUESTS)
    )
    answers = await asyncio.gather(*uploads)
    assert sorted(answer.status_code for answer in answers) == _STATUSES
    assert {answer.json()["error"]["code"] for answer in answers if answer.is_error} == {"file_limit_reached"}


async def test_batches_created_together_stay_within_the_limit(
    platform: RunningPlatform, owner: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{_ROOM}.MAX_OPEN_BATCHES", 1)
    async with occupied(platform):
        body = {"requests": [request("a")]}
        creations = (owner.user.client.post("/v1/messages/batches", json=body) for _ in range(_PARALLEL_REQUESTS))
        answers = await asyncio.gather(*creations)
    assert sorted(answer.status_code for answer in answers) == _STATUSES
    assert {answer.json()["error"]["code"] for answer in answers if answer.is_error} == {"batch_limit_reached"}
