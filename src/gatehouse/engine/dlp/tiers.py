"""The two model tiers, and what reads documents, as the engine sees them: asked from the event loop, answered
elsewhere, in bounded time."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from gatehouse.detection.documents.output import Reading
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed

__all__ = ["Detectors", "DlpOptions", "NoDetectors", "TierFailed"]


class Detectors(Protocol):
    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """For each text what the entities tier found; `labels` are names to look for besides `ENTITIES`. Raises
        `TierFailed`, at the latest after the time budget."""

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """For each text the score of every label. Raises `TierFailed`, at the latest after the time budget."""

    async def document(self, data: bytes, *, is_called_text: bool, seconds: float) -> Reading:
        """What is read of a file. Raises `TierFailed`, soon after so many seconds at the latest."""


class NoDetectors:
    """Where no model tier runs: a rule that needs one fails as a crashed one does, and so does a document."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        raise TierFailed("ner", "unavailable")

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise TierFailed("llm", "unavailable")

    async def document(self, data: bytes, *, is_called_text: bool, seconds: float) -> Reading:
        raise TierFailed("documents", "unavailable")


class DlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the installation decides, not an organization."""

    #: what happens when a tier gives no answer
    fail_mode: Literal["open", "closed"] = "closed"
    #: `window`: a stream is held back as far as a match may reach; `hold`: until its end
    stream_mode: Literal["window", "hold"] = "window"
    #: what happens to an image, a recording or a file that nothing can read; an organization may block it, too
    unreadable: Literal["log_only", "block"] = "log_only"
    #: what reading the documents of a request may take, waiting included
    document_seconds: float = 5.0
    block_status: Literal[403, 400] = 403
    prompt_timeout_seconds: float = 120.0
    #: what the pattern tier may take for a request, and as much again for its answer: seconds of a processor, and of
    #: time with waiting; searching and the work around it each
    pattern_work_seconds: float = 20.0
    pattern_timeout_seconds: float = 120.0
