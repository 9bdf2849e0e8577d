"""Sends to Splunk's HTTP Event Collector and compatible receivers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from yarl import URL

from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget

_PATH: Final = "/services/collector/event"
_TOO_LARGE_STATUS: Final = 413
_TIMEOUT_SECONDS: Final = 15.0

#: reasons by the codes in a collector's responses; they continue "the receiver answered 403"
_REASONS: Final[Mapping[int, str]] = {
    1: ": the token is disabled",
    3: ": the token is malformed",
    4: ": the token is unknown",
    7: ": the index is unknown, or the token has no right to it",
    9: ": the collector is busy",
    10: ": the token requires indexer acknowledgement, which is not supported",
    23: ": the collector is shutting down",
}

_encode = msgspec.json.Encoder().encode


class _HecAnswer(msgspec.Struct):
    code: int


class Hec:
    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers

    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        assert target.url is not None
        url = URL(target.url)
        if url.path in {"", "/"}:
            url = url.with_path(_PATH)
        common: dict[str, Any] = {"source": "gatehouse", **({"index": target.index} if target.index else {})}
        body = b"\n".join(
            _encode({
                "time": round(event.at.timestamp(), 6),
                "sourcetype": event.dataset.replace(".", ":"),
                **common,
                "event": msgspec.Raw(event.body),
            })
            for event in events
        )  # fmt: skip
        headers = {"Authorization": f"Splunk {secret.decode()}", "Content-Type": "application/json"}
        received = await self._receivers.post(str(url), body, headers, seconds=_TIMEOUT_SECONDS)
        if received.fault is not None:
            raise BatchRefused(received.fault + _reason(received.body), too_large=received.status == _TOO_LARGE_STATUS)


def _reason(answer: str) -> str:
    """Returns a reason for the code in a collector's response, or an empty text. The collector's own message is not
    used, because it may quote the events."""
    try:
        return _REASONS.get(msgspec.json.decode(answer, type=_HecAnswer).code, "")
    except msgspec.DecodeError:
        return ""
