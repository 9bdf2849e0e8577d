"""Tells the receivers of rules that triggered (reference 3, Alerts, Notification). Each is tried once."""

import asyncio
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from pydantic import SecretStr
from sqlalchemy import Row

from gatehouse.foundation.clock import iso
from gatehouse.foundation.egress import UnsafeUrl
from gatehouse.foundation.receivers import ReceiverFailed
from gatehouse.platform.jobs import Tools
from gatehouse.platform.operations.alerts import table

#: Sent at once. A receiver has ten seconds, and so has the whole lot.
_MOST: Final = 200


async def send_due(tools: Tools) -> None:
    while True:
        async with tools.database.service() as session:
            records = await table.claim_unsent(session, datetime.fromtimestamp(tools.clock.now(), UTC), _MOST)
            await session.commit()
        answers = await asyncio.gather(*(_sent(tools, record) for record in records))
        if delivered := [record_id for record_id in answers if record_id is not None]:
            async with tools.database.service() as session:
                await table.delivered(session, delivered)
                await session.commit()
        if len(records) < _MOST:
            return


async def _sent(tools: Tools, record: Row[Any]) -> UUID | None:
    """The record's id where the receiver took it."""
    body, headers = notification(record, tools.settings.alert_webhook_secret)
    try:
        answer = await tools.receivers.post(record.webhook_url, body, headers)
    except (UnsafeUrl, ReceiverFailed):
        return None
    record_id: UUID = record.id
    return record_id if answer.taken else None


def notification(record: Any, secret: SecretStr | None) -> tuple[bytes, dict[str, str]]:
    """Body and headers, signed as webhooks are. `record` has a history record's fields."""
    body = msgspec.json.encode(
        {
            "alert_rule_id": record.rule_id,
            "alert_name": record.rule_name,
            "metric_type": record.metric_type,
            "metric_value": record.metric_value,
            "threshold": record.threshold,
            "comparison": record.comparison,
            "triggered_at": iso(record.triggered_at),
        }
    )
    headers = {"Content-Type": "application/json"}
    if secret is not None:
        digest = hmac.new(secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
        headers |= {"X-Service-Signature": f"sha256={digest}", "X-Webhook-Signature": digest}
    return body, headers
