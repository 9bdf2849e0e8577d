"""The application of an administration API finds the same route as FastAPI does, but tries fewer of them."""

from itertools import product
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from gatehouse.administration.application import Documentation, build_application
from gatehouse.foundation.http.envelopes import ErrorFormats


async def _answer() -> None:
    """Do nothing."""


def families() -> list[APIRouter]:
    groups, members, anything = APIRouter(prefix="/v1/groups"), APIRouter(), APIRouter()
    for router, method, path in [
        (groups, "GET", ""),
        (groups, "GET", "/{group_id}"),
        (groups, "DELETE", "/{group_id}"),
        (members, "GET", "/v1/groups/{group_id}/members"),
        (members, "POST", "/v1/members"),
        (anything, "GET", "/{first}/last"),
    ]:
        router.add_api_route(path, _answer, methods=[method], name=f"{method} {path}")
    return [groups, members, anything]


def _match(app: FastAPI, method: str, path: str, root_path: str = "") -> tuple[Match, dict[str, Any]]:
    scope = {"type": "http", "method": method, "path": path, "root_path": root_path, "headers": [], "query_string": b""}
    matches = [route.matches(scope) for route in app.router.routes]
    best, child = max(matches, key=lambda match: match[0].value, default=(Match.NONE, {}))
    return best, dict(child.get("path_params", {}))


@pytest.mark.parametrize(
    ("method", "path"),
    product(
        ["GET", "POST", "DELETE"],
        ["/", "/v1/groups", "/v1/groups/7", "/v1/groups/7/members", "/v1/members", "/v1/member", "/x/last", "/v1/last"],
    ),
)
@pytest.mark.parametrize("root_path", ["", "/below"])
def test_a_path_matches_as_if_all_routes_were_tried(method: str, path: str, root_path: str) -> None:
    app, _ = build_application(
        "Test", "A test.", families(), ErrorFormats({}), tolerant=(), moving=(), documentation=Documentation()
    )
    plain = FastAPI(openapi_url=None)
    for family in families():
        plain.include_router(family)
    assert _match(app, method, root_path + path, root_path) == _match(plain, method, root_path + path, root_path)


def test_routes_of_families_with_other_prefixes_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = build_application(
        "Test", "A test.", families(), ErrorFormats({}), tolerant=(), moving=(), documentation=Documentation()
    )
    tried = []
    matches = APIRoute.matches

    def recorded(route: APIRoute, scope: Scope) -> tuple[Match, Scope]:
        tried.append(route.name)
        return matches(route, scope)

    monkeypatch.setattr(APIRoute, "matches", recorded)
    _match(app, "POST", "/v1/members")
    assert not [name for name in tried if name in {"GET ", "GET /{group_id}", "DELETE /{group_id}"}]
    assert "POST /v1/members" in tried
