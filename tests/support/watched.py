"""Passes all requests, responses and database rows to the `LeakDetector`: credentials as secrets, everything else as
text in which no secret may occur."""

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import psycopg
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.support.leaks import LEAK_DETECTOR, LeakDetector
from tests.support.secret_fields import PAGES, PORTAL_TELLING, TELLING, is_secret

from gatehouse.platform.worker.app import Platform

#: Maximum bytes of a request and of an answer that are kept.
_REQUEST_BYTES, _ANSWER_BYTES = 64 * 1024, 1024 * 1024
_BLANK = "<told here>"
#: Cookies that contain a secret for the browser.
_COOKIES = (
    "gatehouse_session=", "gatehouse_saml=", "__Host-gatehouse_saml=", "gatehouse_pending=", "gatehouse_form=",
    "gatehouse_portal=", "gatehouse_portal_arrived=", "gatehouse_portal_sign_in_",
)  # fmt: skip
_hexadecimal = re.compile(rb"\\\\x((?:[0-9a-f]{2})+)").sub
#: Removes the value of `password_hash`, the only column that may contain password hashes, from a row of `users`.
_hash = re.compile(rb'"password_hash":"[^"]*"').sub


class WatchedPlatform(Platform):
    """The platform's application, whose requests and answers are observed."""

    watch: LeakDetector = LEAK_DETECTOR

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Watched(super().__call__, self.watch)(scope, receive, send)


class Watched:
    """An application whose requests and answers are observed."""

    def __init__(self, app: ASGIApp, watch: LeakDetector = LEAK_DETECTOR) -> None:
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope["method"], scope["path"], scope["headers"])

        async def receive_observed() -> Message:
            message = await receive()
            exchange.hear(message.get("body", b""))
            return message

        async def send_observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status, exchange.headers = message["status"], list(message.get("headers", ()))
            else:
                exchange.say(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive_observed, send_observed)
        finally:
            exchange.route = getattr(scope.get("route"), "path_format", None)
            exchange.tell(self._watch)


class Exchange:
    """A request and its answer. `route` is the path template of the API route that handled the request, or None if no
    such route did, as for model calls. Header names in `sent` are in lower case."""

    def __init__(self, method: str, path: str, sent: Iterable[tuple[bytes, bytes]], route: str | None = None) -> None:
        self.method = method
        self.path = path
        self.sent = sent
        self.route = route
        self.request_body = b""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.answered = b""

    def hear(self, body: bytes) -> None:
        self.request_body += body[: _REQUEST_BYTES - len(self.request_body)]

    def say(self, body: bytes) -> None:
        self.answered += body[: _ANSWER_BYTES - len(self.answered)]

    def tell(self, watch: LeakDetector) -> None:
        operation = (self.method, self.route or self.path)
        for value, kind in self._credentials():
            watch.add_secret(value, f"{kind} that {' '.join(operation)} was given")
        place = " ".join(["answer of", *operation])
        for name, raw in self.headers:
            value = raw.decode("latin-1")
            if name.lower() == b"set-cookie" and value.startswith(_COOKIES):
                watch.add_secret(value.partition("=")[2].partition(";")[0], "a session's cookie")
            elif name.lower() == b"location" and (code := re.search(r"[?&]code=([^&]+)", value)) is not None:
                watch.add_secret(code[1], "an authorization code")
            else:
                watch.add_text(f"header {name.decode()} in the {place}", value)
        # The OpenAPI document is not searched: schemathesis sends its example values as secrets, so they occur there.
        if operation != ("GET", "/openapi.json"):
            watch.add_text(place, self._without_what_it_may_tell(watch, operation))

    def _credentials(self) -> Iterator[tuple[str, str]]:
        if self.status == 401:
            return
        for name, value in self.sent:
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                yield value[7:].decode("latin-1"), "a bearer token"
            elif name == b"x-api-key":
                yield value.decode("latin-1"), "a key"
        # Fields of refused requests are no secrets, and model calls have no such fields.
        if self.route is not None and self.status < 400:
            for name, value in _texts(_parsed(self.request_body)):
                if is_secret(name):
                    yield value, f"a {name}"

    def _without_what_it_may_tell(self, watch: LeakDetector, operation: tuple[str, str]) -> bytes:
        if operation in PAGES:
            return self._page_without(watch, operation)
        fields = TELLING.get(operation) or PORTAL_TELLING.get(operation)
        if not fields:
            return self.answered
        body = _parsed(self.answered)
        for name, value in _texts(body):
            if name in fields:
                watch.add_secret(value, f"a {name} that {' '.join(operation)} has told")
        return json.dumps(_blanked(body, fields)).encode()

    def _page_without(self, watch: LeakDetector, operation: tuple[str, str]) -> bytes:
        page = self.answered.decode()
        for name in PAGES[operation]:
            for value in set(re.findall(rf'name="{name}"[^>]* value="([^"]+)"', page)):
                watch.add_secret(html.unescape(value), f"a {name} that {' '.join(operation)} has shown")
                page = page.replace(value, _BLANK)
        return page.encode()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return dict(parse_qsl(body.decode("latin-1")))


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string with the name of its field. Strings in a list have the name of the list's field, and strings
    anywhere below a field with a secret name have that name."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, name if is_secret(name) else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, name)


def _blanked(value: Any, fields: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _BLANK if name in fields else _blanked(inner, fields) for name, inner in value.items()}
    return [_blanked(inner, fields) for inner in value] if isinstance(value, list) else value


def see_databases(owner_url: str, watch: LeakDetector = LEAK_DETECTOR) -> None:
    """Add every row of all databases to `watch`, except the rows of template databases and of system catalogs."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        names = connection.execute("SELECT datname FROM pg_database WHERE NOT datistemplate").fetchall()
    for (name,) in names:
        with psycopg.connect(owner_url, dbname=name, autocommit=True) as connection:
            tables = connection.execute(
                "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace NOT IN"
                " ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
            ).fetchall()
            for (table,) in tables:
                _see_table(connection, table, watch)


def _see_table(connection: psycopg.Connection[Any], table: str, watch: LeakDetector) -> None:
    with connection.cursor().copy(f"COPY (SELECT row_to_json(t) FROM {table} t) TO STDOUT") as rows:  # type: ignore[arg-type]
        for row in rows:
            # Bytes are output in hexadecimal, in which a text would not be recognized.
            result = _hexadecimal(lambda match: bytes.fromhex(match[1].decode()), bytes(row))
            watch.add_text(f"table {table}", _hash(b"", result) if table == "users" else result)
