"""What a caller is told when DLP stops a request. Never the matched text."""

from gatehouse.engine.dlp.decide import Hit
from gatehouse.foundation.errors import BadRequest, Forbidden, Refusal, Unavailable


class DlpViolation(Forbidden):
    """403 (reference 1, Errors): header `X-DLP-Action` says BLOCK, or CANCEL where a person refused or nobody
    answered."""

    type = "dlp_violation"
    code = "dlp_violation"
    message = "The content was blocked by a data-loss prevention rule."


class DlpViolationAs400(BadRequest):
    """The same where `DLP_BLOCK_STATUS` is 400."""

    type = "dlp_violation"
    code = "dlp_violation"
    message = DlpViolation.message


class DlpUnavailable(Unavailable):
    """A tier that a rule needs gave no answer, and `DLP_FAIL_MODE` is `closed`."""

    code = "dlp_unavailable"
    message = "The content could not be inspected now, so it was not let through. Try again."


def violation(hit: Hit | None, action: str, status: int, message: str | None = None) -> Refusal:
    """`action` is BLOCK or CANCEL."""
    kind = DlpViolationAs400 if status == 400 else DlpViolation
    extra = {"dlp_action": action}
    if hit is not None:
        extra |= {"rule_id": hit.rule.id, "entity_type": hit.rule.entity_type}
        message = message or f"The content was blocked by a data-loss prevention rule ({hit.rule.name})."
    return kind(message, headers={"X-DLP-Action": action}, **extra)
