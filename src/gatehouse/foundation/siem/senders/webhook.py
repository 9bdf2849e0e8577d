"""Sends batches to an HTTPS receiver, in the envelope and with the signature of webhooks (docs/webhooks.md)."""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget

_EVENT_TYPE: Final = "siem_events"
_TOO_LARGE_STATUS: Final = 413
_TIMEOUT_SECONDS: Final = 15.0


class WebhookSender:
    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers

    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        assert target.url is not None
        payload = {"events": [msgspec.Raw(event.body) for event in events]}
        body = msgspec.json.encode({"event_type": _EVENT_TYPE, "payload": payload, "timestamp": iso(utc_now())})
        digest = hmac.new(secret, body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Service-Delivery-Id": str(new_id()),
            "X-Service-Signature": f"sha256={digest}",
            "X-Webhook-Signature": digest,
        }
        received = await self._receivers.post(target.url, body, headers, seconds=_TIMEOUT_SECONDS)
        if received.fault is not None:
            raise BatchRefused(received.fault, too_large=received.status == _TOO_LARGE_STATUS)
