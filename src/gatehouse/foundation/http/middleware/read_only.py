"""Accepts read-only fields in updates, so that a `PUT` or `PATCH` may send a resource as `GET` returned it.

If the operation refuses fields of the body, the middleware compares the body with the response of `GET` on the same
path for the same caller. It removes the refused fields whose values are unchanged and runs the request again. Changed
and unknown fields are refused by name. A null that `GET` returns is accepted even if the operation requires a value.

If the path has no `GET`, the middleware reads the parent path. The last path segment names an item of the parent's
list, or a part of the parent.

Requests without refused fields cost nothing. The comparison reads in a transaction of its own and takes no lock:
`If-Match` protects against concurrent updates.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http.envelopes import MAX_FAULTS, ParameterFault
from gatehouse.foundation.http.handlers import FAILED_VALIDATION, ErrorResponses
from gatehouse.foundation.http.middleware.replay import replay

_UPDATES: Final = frozenset({"PUT", "PATCH"})
#: headers of the update that do not apply to the read
_UPDATE_HEADERS: Final = frozenset({b"content-length", b"content-type", b"if-match", b"if-none-match"})
_UNKNOWN_FIELD: Final = "extra_forbidden"
_READ_ONLY: Final = "is read-only. Leave it out, or send the value that GET shows."
_ABSENT: Final = object()
_MAX_ROUNDS: Final = 3

Path = tuple[str | int, ...]


class ReadOnlyFields:
    """Middleware that accepts read-only fields. `moving` lists the fields that change without an update, such as
    counters and times of use: any value of these is accepted, because the client's value may be out of date.
    `shown_elsewhere` maps path prefixes of updates to the prefixes under which the resources are read."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        responses: ErrorResponses,
        moving: Collection[str] = (),
        shown_elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._app = app
        self._responses = responses
        self._moving = frozenset(moving)
        self._shown_elsewhere = shown_elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _UPDATES:
            await self._app(scope, receive, send)
            return
        raw = await _read_body(receive)
        current: Any = _ABSENT
        # Some families validate a body in stages, so the operation may refuse further fields in the next round.
        for _ in range(_MAX_ROUNDS):
            refusal, answer = await self._attempt(scope, raw, receive, send)
            if refusal is None:
                return
            body = _parsed(raw)
            refused_paths = [path for fault in refusal.faults if (path := _removable(fault, body))]
            if refused_paths and current is _ABSENT:
                current = await self._current(scope, receive)
            if not refused_paths or current is _ABSENT:
                break
            unchanged = {path for path in refused_paths if self._unchanged(path, body, current)}
            faults = [
                _explained(fault, current) for fault in refusal.faults if _removable(fault, body) not in unchanged
            ]
            if faults:
                await self._responses.to(scope, Unprocessable(faults=faults[:MAX_FAULTS]))(scope, receive, send)
                return
            for path in unchanged:
                _remove(body, path)
            raw = json.dumps(body).encode()
        for message in answer:
            await send(message)

    async def _attempt(
        self, scope: Scope, raw: bytes, receive: Receive, send: Send
    ) -> tuple[Unprocessable | None, list[Message]]:
        """Runs the request. Sends the response and returns None, unless the operation refuses fields: then returns the
        error and the unsent messages of the response."""
        state = scope.setdefault("state", {})
        state.pop(FAILED_VALIDATION, None)
        withheld: list[Message] = []

        async def send_or_withhold(message: Message) -> None:
            if FAILED_VALIDATION in state:
                withheld.append(message)
            else:
                await send(message)

        await self._app(scope, replay(raw, receive), send_or_withhold)
        return state.pop(FAILED_VALIDATION, None), withheld

    async def _current(self, scope: Scope, receive: Receive) -> Any:
        """Returns the resource as GET returns it to this caller, or `_ABSENT` if the caller cannot read it."""
        path: str = scope["path"]
        for prefix, read_prefix in self._shown_elsewhere.items():
            if path.startswith(prefix):
                path = read_prefix + path.removeprefix(prefix)
        resource = await self._read(scope, path, receive)
        if resource is not _ABSENT:
            return resource
        parent, _, last = scope["path"].rstrip("/").rpartition("/")
        for path in (parent, parent + "/"):
            container = await self._read(scope, path, receive)
            if container is not _ABSENT:
                return _part_named(container, unquote(last))
        return _ABSENT

    async def _read(self, scope: Scope, path: str, receive: Receive) -> Any:
        state = {**scope["state"], "response_headers": {}}
        headers = [(name, value) for name, value in scope["headers"] if name not in _UPDATE_HEADERS]
        copied = ("app", "type", "asgi", "http_version", "scheme", "client", "server", "root_path", "extensions")
        read_scope: Scope = {name: scope[name] for name in copied if name in scope}
        read_scope = {**read_scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        status, parts = 0, []

        async def collect(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                parts.append(message.get("body", b""))

        await self._app({**read_scope, "headers": headers, "state": state}, replay(b"", receive), collect)
        return _parsed(b"".join(parts)) if status == 200 else _ABSENT

    def _unchanged(self, path: Path, body: Any, current: Any) -> bool:
        value = _at(current, path)
        return value is not _ABSENT and (path[0] in self._moving or same(_at(body, path), value))


def same(sent: Any, shown: Any) -> bool:
    """Returns whether two JSON values are equal. Timestamps and UUIDs are equal if their values are, whatever their
    text."""
    if isinstance(sent, str) and isinstance(shown, str):
        return sent == shown or _same_moment(sent, shown) or _same_id(sent, shown)
    if isinstance(sent, dict) and isinstance(shown, dict):
        return sent.keys() == shown.keys() and all(same(value, shown[name]) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(shown, list):
        return len(sent) == len(shown) and all(map(same, sent, shown))
    return isinstance(sent, bool) is isinstance(shown, bool) and bool(sent == shown)


def _same_moment(sent: str, shown: str) -> bool:
    """Returns whether two timestamps are equal. Many languages truncate timestamps to milliseconds, so `sent` may also
    be `shown` truncated to milliseconds."""
    try:
        sent_time, shown_time = datetime.fromisoformat(sent), datetime.fromisoformat(shown)
        return sent_time in (shown_time, shown_time.replace(microsecond=shown_time.microsecond // 1000 * 1000))
    except (ValueError, TypeError):
        return False


def _same_id(sent: str, shown: str) -> bool:
    try:
        return UUID(sent) == UUID(shown)
    except ValueError:
        return False


def _removable(fault: FieldFault, body: Any) -> Path | None:
    """Returns the path of the refused field if it may be removed: if the operation does not know it, or if its value is
    null. Returns None for other fields."""
    if not isinstance(fault, ParameterFault) or fault.loc[0] != "body":
        return None
    path = fault.loc[1:]
    return path if path and (fault.kind == _UNKNOWN_FIELD or _at(body, path) is None) else None


def _explained(fault: FieldFault, current: Any) -> FieldFault:
    """Returns the fault, with another message for a field that GET shows and an update may not change."""
    if not isinstance(fault, ParameterFault) or fault.kind != _UNKNOWN_FIELD or _at(current, fault.loc[1:]) is _ABSENT:
        return fault
    return ParameterFault(fault.loc, _READ_ONLY, kind="read_only")


def _at(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return _ABSENT
    return value


def _remove(body: Any, path: Path) -> None:
    parent = _at(body, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def _part_named(container: Any, name: str) -> Any:
    """Returns the item with this name or id if the container is a list or an envelope with lists, else the part with
    this name, else the container itself. Returns `_ABSENT` for a list without such an item."""
    is_list = isinstance(container, list)
    lists = [container] if is_list else [value for value in container.values() if isinstance(value, list)]
    for item in (item for items in lists for item in items if isinstance(item, dict)):
        if any(isinstance(value, str) and same(name, value) for value in item.values()):
            return item
    if is_list:
        return _ABSENT
    part = container.get(name.replace("-", "_"))
    return part if isinstance(part, dict) else container


def _parsed(raw: bytes) -> Any:
    """Returns a JSON object or array, or `_ABSENT` for anything else."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return _ABSENT
    return value if isinstance(value, (dict, list)) else _ABSENT


async def _read_body(receive: Receive) -> bytes:
    """Returns the request's body. Another layer limits its size."""
    parts = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return b"".join(parts)
