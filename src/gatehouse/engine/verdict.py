"""All that a stage may say about a request. A stage never logs, raises HTTP errors or calls the next stage."""

from typing import Any, TypeAlias
from uuid import UUID

from gatehouse.foundation.errors import Refusal


class Allow:
    """Nothing to object; the next stage looks."""

    __slots__ = ()


class Refuse:
    """The request ends here with this error."""

    __slots__ = ("error",)

    def __init__(self, error: Refusal) -> None:
        self.error = error


class Hold:
    """The request waits for a person's decision."""

    __slots__ = ("approval_id", "timeout_seconds")

    def __init__(self, approval_id: UUID, timeout_seconds: float) -> None:
        self.approval_id = approval_id
        self.timeout_seconds = timeout_seconds


class Rewrite:
    """The request goes on with another body, for example redacted."""

    __slots__ = ("body",)

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body


Verdict: TypeAlias = Allow | Refuse | Hold | Rewrite

#: The one `Allow` there needs to be.
ALLOW = Allow()
