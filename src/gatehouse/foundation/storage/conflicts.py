"""Converts violations of unique constraints into errors of a family."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from psycopg import errors
from sqlalchemy.exc import IntegrityError

from gatehouse.foundation.errors import Refusal


@contextmanager
def unique(conflict: Refusal | type[Refusal] | Mapping[str, type[Refusal]]) -> Iterator[None]:
    """Raises `conflict` if a flush in this block violates a unique constraint. With a mapping, the name of the
    constraint selects the error. Other errors of the database, and constraints that are not in the mapping, propagate.

    The constraint also detects a concurrent request, which a query before the insert would not detect.
    """
    try:
        yield
    except IntegrityError as error:
        if not isinstance(error.orig, errors.UniqueViolation):
            raise
        selected = conflict.get(error.orig.diag.constraint_name or "") if isinstance(conflict, Mapping) else conflict
        if selected is None:
            raise
        raise selected from None
