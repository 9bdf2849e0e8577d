"""The 76 built-in patterns, as data. They apply to every organization."""

from typing import Final

from gatehouse.detection.catalog import (
    financial,
    infrastructure,
    medical,
    pii_contact,
    pii_dates,
    pii_government,
    secrets_cloud,
    secrets_general,
    secrets_services,
)
from gatehouse.detection.pattern import Pattern

BUILT_IN: Final[tuple[Pattern, ...]] = (
    *secrets_cloud.PATTERNS,
    *secrets_services.PATTERNS,
    *secrets_general.PATTERNS,
    *pii_contact.PATTERNS,
    *pii_dates.PATTERNS,
    *pii_government.PATTERNS,
    *financial.PATTERNS,
    *medical.PATTERNS,
    *infrastructure.PATTERNS,
)
