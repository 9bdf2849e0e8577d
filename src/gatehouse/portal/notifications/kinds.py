"""Kinds of notifications and their severities."""

from typing import Final, Literal

Kind = Literal["outpost_stale", "dead_letter", "provisioning_failed"]
Severity = Literal["warning", "critical"]

SEVERITIES: Final[dict[Kind, Severity]] = {
    "outpost_stale": "warning", "dead_letter": "warning", "provisioning_failed": "critical",
}  # fmt: skip
