"""The two model tiers as the engine sees them: asked from the event loop, answered elsewhere, in bounded time."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed

__all__ = ["Detectors", "DlpOptions", "NoDetectors", "TierFailed"]


class Detectors(Protocol):
    async def entities(self, texts: Sequence[str]) -> list[list[Finding]]:
        """For each text what the entities tier found. Raises `TierFailed`, at the latest after the time budget."""

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """For each text the score of every label. Raises `TierFailed`, at the latest after the time budget."""


class NoDetectors:
    """Where no model tier runs: a rule that needs one fails as a crashed one does."""

    async def entities(self, texts: Sequence[str]) -> list[list[Finding]]:
        raise TierFailed("ner", "unavailable")

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise TierFailed("llm", "unavailable")


class DlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the installation decides, not an organization."""

    #: what happens when a tier gives no answer
    fail_mode: Literal["open", "closed"] = "closed"
    #: `window`: a stream is held back as far as a match may reach; `hold`: until its end
    stream_mode: Literal["window", "hold"] = "window"
    #: whether an image, a recording or a file passes, which nothing can read
    uninspectable: Literal["pass", "block"] = "pass"
    block_status: Literal[403, 400] = 403
    prompt_timeout_seconds: float = 120.0
