"""Ids of files and batches as the APIs show them: a prefix and the UUID without hyphens."""

from typing import Annotated, Final, TypeAlias
from uuid import UUID

from pydantic import BeforeValidator, WithJsonSchema

from gatehouse.engine.conversation.errors import InvalidField

FILE_PREFIX: Final = "file-"
BATCH_PREFIX: Final = "batch_"
MESSAGE_BATCH_PREFIX: Final = "msgbatch_"

_HEX_CHARACTERS: Final = 32


def shown_id(prefix: str, row_id: UUID) -> str:
    return prefix + row_id.hex


def parse_id(prefix: str, shown: object) -> UUID | None:
    """Return the UUID in an id, or None for a text that is not such an id."""
    if not isinstance(shown, str) or not shown.startswith(prefix):
        return None
    digits = shown.removeprefix(prefix)
    try:
        return UUID(hex=digits) if len(digits) == _HEX_CHARACTERS else None
    except ValueError:
        return None


def parse_cursor(prefix: str, name: str, shown: str | None) -> UUID | None:
    """Return the id in a query parameter of a list, or None without the parameter. Raises `InvalidField` for a text
    that is not such an id."""
    if shown is None:
        return None
    row_id = parse_id(prefix, shown)
    if row_id is None:
        raise InvalidField(name, f"must be an id of this list, which begins with {prefix}")
    return row_id


# Text that is not an id becomes None, which matches no row.
FileId: TypeAlias = Annotated[
    UUID | None,
    BeforeValidator(lambda shown: parse_id(FILE_PREFIX, shown)),
    WithJsonSchema({"type": "string", "examples": ["file-0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"]}),
]
BatchId: TypeAlias = Annotated[
    UUID | None,
    BeforeValidator(lambda shown: parse_id(BATCH_PREFIX, shown)),
    WithJsonSchema({"type": "string", "examples": ["batch_0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"]}),
]
MessageBatchId: TypeAlias = Annotated[
    UUID | None,
    BeforeValidator(lambda shown: parse_id(MESSAGE_BATCH_PREFIX, shown)),
    WithJsonSchema({"type": "string", "examples": ["msgbatch_0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"]}),
]
