"""The interface of the two model tiers and the document reader. They run in other processes and answer in bounded time,
so the event loop can await them."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from gatehouse.detection.documents.output import Reading
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed

__all__ = ["Detectors", "DlpOptions", "NoDetectors", "TierFailed"]


class Detectors(Protocol):
    """The model tiers and the document reader."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """Return the findings of the entities tier in each text. `labels` are names to recognize in addition to
        `ENTITIES`. Raises `TierFailed` if the tier fails or exceeds its time budget."""

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """Return the score of every label for each text. Raises `TierFailed` if the tier fails or exceeds its time
        budget."""

    async def document(self, data: bytes, *, declared_as_text: bool, seconds: float) -> Reading:
        """Return the content of a file. Raises `TierFailed` if reading fails or takes longer than `seconds`."""


class NoDetectors:
    """A host without model tiers. Rules that need one, and documents, fail as after a crash of the tier."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        raise TierFailed("ner", "unavailable")

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise TierFailed("llm", "unavailable")

    async def document(self, data: bytes, *, declared_as_text: bool, seconds: float) -> Reading:
        raise TierFailed("documents", "unavailable")


class DlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the installation. Organizations cannot change them, but `unreadable` can be tightened."""

    #: whether the content passes (`open`) or is refused (`closed`) if a tier fails
    fail_mode: Literal["open", "closed"] = "closed"
    #: `window`: a stream is held back as far as a match may extend; `hold`: until its end
    stream_mode: Literal["window", "hold"] = "window"
    #: the action for an image, a recording or a file that cannot be read; an organization can also block it
    unreadable: Literal["log_only", "block"] = "log_only"
    #: time limit for reading all documents of a request, waiting included
    document_seconds: float = 5.0
    block_status: Literal[403, 400] = 403
    prompt_timeout_seconds: float = 120.0
    #: processor time that the pattern tier may use for a request, and again for its answer. Searching has this limit,
    #: and all other work together has it too
    pattern_work_seconds: float = 20.0
    #: the same for elapsed time, including waiting
    pattern_timeout_seconds: float = 120.0
