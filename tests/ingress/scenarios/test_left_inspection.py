"""When a client disconnects during the inspection of its request, the work ends, in every tier."""

import asyncio
import json
import tempfile
import threading
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.platform import RunningPlatform

from gatehouse.detection import keywords
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierName
from gatehouse.detection.service import wire
from gatehouse.detection.service.client import DetectionClient
from gatehouse.detection.service.process import _Service
from gatehouse.detection.service.tiers import BATCH_TEXTS, TierModels, Tiers
from gatehouse.engine.dlp import attachments, examine
from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.stages.calls import content_filters

CARD = "4111 1111 1111 1111"
#: The number of steps after which the client disconnects. The texts need hundreds.
LEAVES_AFTER = 5


class Steps:
    """Counts the steps of a function that works in steps. The step `LEAVES_AFTER` waits until the client has
    disconnected."""

    def __init__(self, function: Any) -> None:
        self.count = 0
        self.reached = threading.Event()
        self.left = threading.Event()
        self._function = function

    def __call__(self, *arguments: Any, **more: Any) -> Generator[Any, None, Any]:
        steps = iter(self._function(*arguments, **more))
        while True:
            try:
                step = next(steps)
            except StopIteration as stopped:
                return stopped.value
            self.count += 1
            if self.count == LEAVES_AFTER:
                self.reached.set()
                assert self.left.wait(60)
            yield step


def user(content: Any) -> dict[str, Any]:
    return {"model": "sandbox/echo", "messages": [{"role": "user", "content": content}]}


async def connect_and_send(url: str, key: str, body: dict[str, Any]) -> asyncio.StreamWriter:
    """Connect, send a request, and return the connection."""
    content = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    address = urlsplit(url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
    return writer


@pytest.mark.parametrize("tier", ["patterns", "many texts", "filters", "files"])
async def test_work_for_a_disconnected_client_ends_at_the_next_step(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    key = await platform.new_key(tenant.user)
    body = user(f"{CARD}, " * 40_000)
    if tier == "filters":
        steps = Steps(keywords.passages)
        monkeypatch.setattr(content_filters, "passages", steps)
        word = {"filter_type": "keyword_block", "config": {"keywords": ["falcon"]}, "scope": "org", "priority": 1}
        response = await tenant.admin.client.post("/api/admin/content-filters/", json={"name": "words", **word})
        assert response.status_code == 201, response.text
        body = user("and so on, " * 300_000)
    elif tier == "files":
        steps = Steps(attachments._decode_base64)
        monkeypatch.setattr(attachments, "_decode_base64", steps)
        body = user([{"type": "file", "file": {"filename": "a.txt", "file_data": "YW5kIHNvIG9u" * 500_000}}])
    else:
        steps = Steps(examine.scan_in_slices)
        monkeypatch.setattr(examine, "scan_in_slices", steps)
        if tier == "many texts":
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"card": CARD})}}
            body = {**user("hi"), "messages": [{"role": "assistant", "tool_calls": [call] * 5_000}]}
    async with platform.listening() as url, asyncio.timeout(60):
        writer = await connect_and_send(url, key, body)
        while not steps.reached.is_set():
            await asyncio.sleep(0.01)
        writer.transport.abort()
        # The work is cancelled when the server has noticed that the client disconnected.
        while SCHEDULER.waiting:
            await asyncio.sleep(0.01)
        steps.left.set()
        while SCHEDULER._running_threads:
            await asyncio.sleep(0.01)
    assert steps.count == LEAVES_AFTER


class Model:
    """A model for both tiers. Its first batch waits until the client has disconnected. `read` is the number of received
    texts."""

    entities = ("person",)
    labels = ("prompt_injection",)

    def __init__(self) -> None:
        self.read = 0
        self.reached = threading.Event()
        self.left = threading.Event()

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        self.read += len(texts)
        self.reached.set()
        assert self.left.wait(60)
        return [[] for _ in texts]

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        self.recognize(texts)
        return [dict.fromkeys(labels, 0.0) for _ in texts]


@asynccontextmanager
async def detecting_with(model: Model) -> AsyncIterator[DetectionClient]:
    """Yield a client of a detection service in this process, over the service's usual socket."""
    tiers = Tiers(TierModels(lambda: model, lambda: model), queue=1000, hung_after=60)
    with tempfile.TemporaryDirectory(prefix="gh") as directory:
        service = asyncio.create_task(_Service(tiers).serve(Path(directory) / wire.SOCKET))
        client = DetectionClient(Path(directory), budget=60, queue=1000)
        await client.start()
        try:
            yield client
        finally:
            model.left.set()
            await client.stop()
            service.cancel()
            await asyncio.gather(service, return_exceptions=True)


@pytest.mark.parametrize("tier", ["ner", "llm"])
async def test_a_model_does_not_read_queued_texts_of_a_disconnected_client(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, tier: TierName
) -> None:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    key = await platform.new_key(tenant.user)
    config = {"entities": ["person"]} if tier == "ner" else {"labels": ["prompt_injection"]}
    rule = {
        "detector_name": "r",
        "detector_type": tier,
        "entity_type": "x",
        "action_tier": "block",
        "config_json": config,
    }
    texts = [
        f"This is sentence number {number} of a talk in which somebody tells of the last week at work."
        for number in range(60)
    ]
    body = {**user("hi"), "messages": [{"role": "user", "content": text} for text in texts]}
    model = Model()
    async with detecting_with(model) as client, platform.listening() as url, asyncio.timeout(60):
        monkeypatch.setattr(platform.host, "detectors", client)
        monkeypatch.setattr(platform.host.ports, "detectors", client)
        response = await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)
        assert response.status_code == 201, response.text
        writer = await connect_and_send(url, key, body)
        while not model.reached.is_set():
            await asyncio.sleep(0.01)
        writer.transport.abort()
        while client.waiting(tier):
            await asyncio.sleep(0.01)
        # This request follows the cancellation on the same connection.
        await client.health()
        model.left.set()
        while (await client.health())[tier].waiting:
            await asyncio.sleep(0.01)
    assert model.read == BATCH_TEXTS
