"""Loads the detection models that a changed policy needs before the change takes effect, so that no request is refused
because a model is missing.
"""

from typing import Final, get_args

from sqlalchemy import text

from gatehouse.detection.models import TierName
from gatehouse.detection.service.client import DetectionClient
from gatehouse.platform.changes.change import Change

#: Time limit for loading. It is less than `idle_in_transaction_session_timeout`, because the transaction of the change
#: stays open while models load.
_LOAD_TIMEOUT_SECONDS: Final = 10.0
#: Value of the header `X-Gateway-Warning` if a model is not loaded in time.
WARNING: Final = "The model of the {} tier is not loaded yet; until it is, requests fail as DLP_FAIL_MODE says."

_NEEDED_TIERS: Final = text(
    "SELECT EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'ner') AS ner,"
    " EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'llm')"
    " OR EXISTS (SELECT 1 FROM content_filters WHERE enabled AND filter_type = 'topic_block') AS llm"
)


async def load_ahead(change: Change, detectors: DetectionClient) -> list[TierName]:
    """Load the tiers that the organization's policy will need, and return the tiers that are not loaded after ten
    seconds. Call this before the commit, because it reads the policy in the transaction of the change."""
    if not change.touches("policy"):
        return []
    await change.session.flush()
    row = (await change.session.execute(_NEEDED_TIERS)).one()
    tiers: list[TierName] = [tier for tier in get_args(TierName) if getattr(row, tier)]
    for tier in tiers:
        detectors.need(tier)
    return await detectors.loaded(_LOAD_TIMEOUT_SECONDS, tiers)
