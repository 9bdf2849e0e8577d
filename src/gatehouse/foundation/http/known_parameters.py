"""Refuses unknown query parameters, so that a list with a misspelt filter does not return all rows, and a change with a
misspelt `dry_run` is not made.

The check runs after all dependencies of an operation and before the operation itself. So 401, 403 and 404 take
precedence over this error, as they do over an invalid body.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant

from gatehouse.foundation.errors import Unprocessable
from gatehouse.foundation.http.envelopes import MAX_FAULTS, ParameterFault
from gatehouse.foundation.http.handlers import MAX_NAME_CHARACTERS

_MAX_NAMES_SHOWN: Final = 30


def refuse_unknown_parameters(path: str, dependant: Dependant) -> None:
    """Change an operation so that it refuses unknown query parameters. `dependant` is the operation with its
    dependencies."""
    dependant.dependencies.append(get_dependant(path=path, call=_check(frozenset(_declared(dependant)))))


def _check(accepted: frozenset[str]) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        if request.scope["query_string"] and (unknown := sorted(request.query_params.keys() - accepted)):
            raise unknown_parameters(unknown, accepted)

    return check


def unknown_parameters(unknown: list[str], accepted: frozenset[str]) -> Unprocessable:
    """Returns the error that identifies the unknown parameters and lists the accepted ones."""
    takes = f"it takes {', '.join(sorted(accepted)[:_MAX_NAMES_SHOWN])}" if accepted else "it takes none"
    message = f"is no parameter of this operation; {takes}"
    faults = [
        ParameterFault(("query", name[:MAX_NAME_CHARACTERS]), message, kind="extra_forbidden")
        for name in unknown[:MAX_FAULTS]
    ]
    return Unprocessable(faults=[*faults])


def _declared(dependant: Any) -> set[str]:
    """Returns the query parameters of an operation and its dependencies."""
    names = {field.alias for field in dependant.query_params}
    return names.union(*map(_declared, dependant.dependencies))
