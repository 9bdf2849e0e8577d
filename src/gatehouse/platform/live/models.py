"""Loads the models that a policy needs before a change of it comes into force, so that no request is refused."""

from typing import Final, get_args

from sqlalchemy import text

from gatehouse.detection.models import TierName
from gatehouse.detection.service.client import DetectionClient
from gatehouse.platform.change import Change

#: Less than `idle_in_transaction_session_timeout`: the change's transaction stays open while its models load.
_LOAD_TIMEOUT_SECONDS: Final = 10.0
#: Value of the header `X-Gateway-Warning` where a model is not loaded in time.
WARNING: Final = "The model of the {} tier is not loaded yet; until it is, requests fail as DLP_FAIL_MODE says."

_NEEDED_TIERS: Final = text(
    "SELECT EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'ner') AS ner,"
    " EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'llm')"
    " OR EXISTS (SELECT 1 FROM content_filters WHERE enabled AND filter_type = 'topic_block') AS llm"
)


async def load_ahead(change: Change, detectors: DetectionClient) -> list[TierName]:
    """Returns the tiers that this organization's policy will need and whose models are not loaded after ten seconds.
    The change is not committed yet: its own transaction sees what it has written."""
    if not change.touches("policy"):
        return []
    await change.session.flush()
    row = (await change.session.execute(_NEEDED_TIERS)).one()
    tiers: list[TierName] = [tier for tier in get_args(TierName) if getattr(row, tier)]
    for tier in tiers:
        detectors.need(tier)
    return await detectors.loaded(_LOAD_TIMEOUT_SECONDS, tiers)
