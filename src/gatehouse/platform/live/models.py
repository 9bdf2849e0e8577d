"""Loads the detection models that a policy needs before its change comes into force, so that no request is refused."""

from typing import Final, get_args

from sqlalchemy import text

from gatehouse.detection.models import TierName
from gatehouse.detection.service.client import DetectionClient
from gatehouse.platform.changes.change import Change

#: Less than `idle_in_transaction_session_timeout`, because the change's transaction stays open while models load.
_LOAD_TIMEOUT_SECONDS: Final = 10.0
#: Value of the header `X-Gateway-Warning` if a model is not loaded in time.
WARNING: Final = "The model of the {} tier is not loaded yet; until it is, requests fail as DLP_FAIL_MODE says."

_NEEDED_TIERS: Final = text(
    "SELECT EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'ner') AS ner,"
    " EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'llm')"
    " OR EXISTS (SELECT 1 FROM content_filters WHERE enabled AND filter_type = 'topic_block') AS llm"
)


async def load_ahead(change: Change, detectors: DetectionClient) -> list[TierName]:
    """Load the tiers that this organization's policy will need, and return those not loaded after ten seconds. Call it
    before the commit: it reads in the change's transaction."""
    if not change.touches("policy"):
        return []
    await change.session.flush()
    row = (await change.session.execute(_NEEDED_TIERS)).one()
    tiers: list[TierName] = [tier for tier in get_args(TierName) if getattr(row, tier)]
    for tier in tiers:
        detectors.need(tier)
    return await detectors.loaded(_LOAD_TIMEOUT_SECONDS, tiers)
