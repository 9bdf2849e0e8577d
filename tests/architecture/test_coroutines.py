"""The dependencies and handlers of the administration APIs are coroutines.

FastAPI runs a plain function in a thread, which costs more than most dependencies do and occupies the pool of threads.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.outpost.admin.app import _FAMILIES as OUTPOST_FAMILIES
from gatehouse.platform.administration.contents import FAMILIES as PLATFORM_FAMILIES
from gatehouse.portal.server.contents import FAMILIES as PORTAL_FAMILIES


@pytest.mark.parametrize("families", [PLATFORM_FAMILIES, PORTAL_FAMILIES, OUTPOST_FAMILIES])
def test_no_dependency_or_handler_runs_in_a_thread(families: tuple[APIRouter, ...]) -> None:
    routes = [route for family in families for route in family.routes if isinstance(route, APIRoute)]
    assert routes
    in_threads = {
        f"{call.__module__}.{call.__qualname__}"
        for route in routes
        for call in _calls(route.dependant)
        if not _runs_in_the_event_loop(call)
    }
    assert in_threads == set()


def _calls(dependant: Dependant) -> Iterator[Callable[..., Any]]:
    if dependant.call is not None:
        yield dependant.call
    for dependency in dependant.dependencies:
        yield from _calls(dependency)


def _runs_in_the_event_loop(call: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        return True
    # An object whose type has an asynchronous `__call__`.
    method = vars(type(call)).get("__call__")
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
