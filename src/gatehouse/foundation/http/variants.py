"""Chooses the API variant of a request (docs/variants.md). No other module chooses it.

The header `X-API-Variant` determines the variant. Without the header, a method, path prefix or parameter that only one
variant has determines it. Otherwise the setting applies. Families read the variant from `RequestVariant` and apply it
in their `variants.py`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl

from fastapi import Depends, Header, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation.errors import BadRequest

_HEADER_BYTES: Final = b"x-api-variant"
#: longer queries are not parsed, because parsing them costs too much
_MAX_QUERY_BYTES: Final = 16 * 1024


class Variant(StrEnum):
    A = "a"
    B = "b"
    C = "c"


class UnknownVariant(BadRequest):
    code = "unknown_variant"
    message = "The header X-API-Variant must be a, b or c."


@dataclass(frozen=True)
class _Signs:
    """The methods (`verbs`) and parameters below one path prefix that belong to only one variant. `always` is the
    variant of a prefix that belongs to only one."""

    always: Variant | None = None
    verbs: Mapping[str, Variant] = field(default_factory=dict)
    parameters: Mapping[str, Variant] = field(default_factory=dict)


_A, _B = Variant.A, Variant.B

#: Only the longest matching prefix applies. Parameters that both variants have are not listed.
_SIGNS: Final[Mapping[str, _Signs]] = {
    "/api/admin/oauth-clients": _Signs(
        verbs={"PUT": _A, "PATCH": _B},
        parameters={"limit": _A, "offset": _A, "page": _B, "page_size": _B, "enabled": _B, "tenant_id": _B},
    ),
    "/api/admin/models": _Signs(parameters={"page": _B, "page_size": _B, "per_page": _A}),
    "/api/admin/models/catalog": _Signs(parameters={"per_page": _A, "page_size": _B, "search": _B}),
    "/api/admin/model-inventory-export": _Signs(parameters={"provider": _A}),
    "/api/admin/webhooks": _Signs(always=_A),
    "/api/v1/admin/webhooks": _Signs(always=_B),
}
_DEFAULT_SIGNS: Final = _Signs(parameters={"page_size": _B, "per_page": _A})


def resolve(method: str, path: str, query: Collection[str], header: str | None, default: Variant) -> Variant:
    """Returns the variant of a request. `query` contains the names of its parameters. Raises `UnknownVariant`.

    If parameters belong to different variants (`limit` with `page_size`), they are ignored and `default` applies.
    """
    if header is not None:
        try:
            return Variant(header.strip().lower())
        except ValueError:
            raise UnknownVariant from None
    signs = _signs(path)
    variant = signs.always or signs.verbs.get(method)
    if variant is not None:
        return variant
    candidates = {signs.parameters[name] for name in query if name in signs.parameters} if query else ()
    return next(iter(candidates)) if len(candidates) == 1 else default


def _signs(path: str) -> _Signs:
    prefix = "/".join(path.split("/", 6)[:6])
    while prefix:
        if (signs := _SIGNS.get(prefix)) is not None:
            return signs
        prefix = prefix.rpartition("/")[0]
    return _DEFAULT_SIGNS


def variant_of(scope: Scope, default: Variant = Variant.A) -> Variant:
    """Returns the variant of a request. It is chosen once and stored in the request's state. Raises
    `UnknownVariant`."""
    state = scope.setdefault("state", {})
    if (stored := state.get("api_variant")) is not None:
        return Variant(stored)
    header = next((value for name, value in scope["headers"] if name == _HEADER_BYTES), None)
    query: bytes = scope.get("query_string", b"")
    names = (
        ()
        if not query or len(query) > _MAX_QUERY_BYTES
        else {name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    )
    variant = resolve(scope["method"], scope["path"], names, header.decode("latin-1") if header else None, default)
    state["api_variant"] = variant
    return variant


class VariantMiddleware:
    """Middleware that chooses the variant before routing and returns it in the header `X-API-Variant`.

    `refuse` responds to an invalid header in the error format of the path. `except_for` lists path prefixes without
    variants: those of model calls, which the check would slow down.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        default: Variant,
        refuse: Callable[[Scope, BadRequest], ASGIApp],
        except_for: tuple[str, ...] = (),
    ) -> None:
        self._app = app
        self._default = default
        self._refuse = refuse
        self._except_for = except_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(self._except_for):
            await self._app(scope, receive, send)
            return
        app = self._app
        try:
            variant = variant_of(scope, self._default)
        except UnknownVariant as error:
            variant = scope["state"]["api_variant"] = self._default
            app = self._refuse(scope, error)

        async def send_with_variant(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (_HEADER_BYTES, variant.value.encode())]
            await send(message)

        await app(scope, receive, send_with_variant)


async def _request_variant(
    request: Request,
    x_api_variant: Annotated[  # declared for the documentation; the middleware has validated it
        Literal["a", "b", "c"] | None, Header(description="Speak this variant of the contract.")
    ] = None,
) -> Variant:
    return variant_of(request.scope)


RequestVariant = Annotated[Variant, Depends(_request_variant)]
