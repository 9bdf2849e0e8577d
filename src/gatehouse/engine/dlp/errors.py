"""Errors for requests that DLP stops. The errors never contain the matched text."""

from gatehouse.engine.dlp.decide import Hit
from gatehouse.foundation.errors import BadRequest, Forbidden, Refusal, Unavailable


class DlpViolation(Forbidden):
    """A rule blocked the content: 403. The header `X-DLP-Action` is `BLOCK`, or `CANCEL` if a person denied the
    approval or nobody decided in time (docs/dlp.md)."""

    type = "dlp_violation"
    code = "dlp_violation"
    message = "The content was blocked by a data-loss prevention rule."


class DlpViolationAs400(BadRequest):
    """A `DlpViolation` with the status 400, for `DLP_BLOCK_STATUS=400`."""

    type = "dlp_violation"
    code = "dlp_violation"
    message = DlpViolation.message


class DlpUnavailable(Unavailable):
    """A tier that a rule needs failed, and `DLP_FAIL_MODE` is `closed`."""

    code = "dlp_unavailable"
    message = "The content could not be inspected, so the request was refused. Try again later."


def violation(hit: Hit | None, action: str, status: int, message: str | None = None) -> Refusal:
    """Return the error for a blocked text. `action` is BLOCK or CANCEL, `status` 403 or 400."""
    error_class = DlpViolationAs400 if status == 400 else DlpViolation
    extra = {"dlp_action": action}
    if hit is not None:
        extra |= {"rule_id": hit.rule.id, "entity_type": hit.rule.entity_type}
        message = message or f"The content was blocked by a data-loss prevention rule ({hit.rule.name})."
    return error_class(message, headers={"X-DLP-Action": action}, **extra)
