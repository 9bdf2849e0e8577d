"""Figures that the request path counts, and what the log says of them."""

from pathlib import Path
from typing import Any

import msgspec
import structlog
from tests.support.engine import HeldEngine, completion

from gatehouse.platform.metrics import Figures

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


async def test_a_model_without_a_price_is_warned_of_once(tmp_path: Path) -> None:
    held = HeldEngine()
    held.serve("one", "free-of-words", "unpriced", "priced")
    for index in (0, 1):
        held.models[index] = msgspec.structs.replace(held.models[index], cost_per_input_token=None)
    held.ports.meter = Figures(tmp_path)
    names = ["one/free-of-words", "one/unpriced", "one/priced"] * 2
    held.outbound.script = [(200, [completion()]) for _ in names]
    with structlog.testing.capture_logs() as logged:
        for name in names:
            await held.engine.answer(held.request({**CHAT, "model": name}))
    warned = [line["model"] for line in logged if line["event"] == "usage.unknown_price"]
    assert warned == ["free-of-words", "unpriced"]
