"""The interface of the two model tiers and the document reader.

The tiers and the reader run in other processes and answer in bounded time, so the event loop can await them."""

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
        """Return the findings of the entities tier in each text. `labels` are names to recognize in addition to those
        in `ENTITIES`. Raises `TierFailed` if the tier fails or exceeds its time budget."""

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """Return the score of every label for each text. Raises `TierFailed` if the tier fails or exceeds its time
        budget."""

    async def document(self, data: bytes, *, declared_as_text: bool, seconds: float) -> Reading:
        """Return the content of a file. Raises `TierFailed` if reading fails or takes longer than `seconds`."""


class NoDetectors:
    """The detectors of a host without model tiers. Rules that need a tier, and documents, fail as they do after a tier
    has crashed."""

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        raise TierFailed("ner", "unavailable")

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        raise TierFailed("llm", "unavailable")

    async def document(self, data: bytes, *, declared_as_text: bool, seconds: float) -> Reading:
        raise TierFailed("documents", "unavailable")


class DlpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the installation. An organization cannot change them, but can tighten `unreadable`."""

    #: whether the content passes (`open`) or is refused (`closed`) if a tier fails
    fail_mode: Literal["open", "closed"] = "closed"
    #: how much of a stream is held back: with `window`, the part to which a match may extend; with `hold`, the whole
    #: stream
    stream_mode: Literal["window", "hold"] = "window"
    #: the action for an image, a recording or a file that cannot be read. An organization can choose to block such
    #: content.
    unreadable: Literal["log_only", "block"] = "log_only"
    #: time limit for reading all documents of a request, including waiting
    document_seconds: float = 5.0
    block_status: Literal[403, 400] = 403
    prompt_timeout_seconds: float = 120.0
    #: processor time that the pattern tier may use for a request, and again for its answer. The limit applies to the
    #: search, and separately to all other work.
    pattern_work_seconds: float = 20.0
    #: elapsed time that the pattern tier may use, including waiting; applies like `pattern_work_seconds`
    pattern_timeout_seconds: float = 120.0
