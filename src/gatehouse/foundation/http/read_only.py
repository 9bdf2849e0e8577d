"""Accepts a resource as it was read: a `PUT` or `PATCH` may carry the read-only fields that `GET` shows.

A body with fields that the operation does not take is compared with what `GET` of the same path answers to the same
caller. Fields whose values are unchanged are removed and the request runs again; changed and unknown ones are refused
by name. A null that `GET` shows is accepted also where the operation wants a value. Where there is no such `GET`, the
path one level up stands in for it: its list's item, or its part, with the last segment's name.

Requests without such fields pay nothing. The comparison reads in a transaction of its own. It locks nothing: against
two updates at once there is `If-Match`.
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
from gatehouse.foundation.http.replay import replay

_UPDATES: Final = frozenset({"PUT", "PATCH"})
#: Headers of the update that say nothing about the read.
_OF_THE_UPDATE: Final = frozenset({b"content-length", b"content-type", b"if-match", b"if-none-match"})
_UNKNOWN_FIELD: Final = "extra_forbidden"
_READ_ONLY: Final = "is read-only. Leave it out, or send the value that GET shows."
_ABSENT: Final = object()
_MAX_ROUNDS: Final = 3

Path = tuple[str | int, ...]


class ReadOnlyFields:
    """`moving` are fields that change without anybody's update (counters, times of use): any value of theirs is
    accepted, because what the client read a moment ago may be out of date. `shown_elsewhere` are prefixes of paths
    whose resources are shown under another prefix."""

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
        raw = await _whole(receive)
        shown: Any = _ABSENT
        # A body is judged in stages in some families, so that one repair can show further fields.
        for _ in range(_MAX_ROUNDS):
            refusal, answer = await self._attempt(scope, raw, receive, send)
            if refusal is None:
                return
            body = _parsed(raw)
            refused_paths = [path for fault in refusal.faults if (path := _removable(fault, body))]
            if refused_paths and shown is _ABSENT:
                shown = await self._shown(scope, receive)
            if not refused_paths or shown is _ABSENT:
                break
            unchanged = {path for path in refused_paths if self._unchanged(path, body, shown)}
            refused = [_explained(fault, shown) for fault in refusal.faults if _removable(fault, body) not in unchanged]
            if refused:
                await self._responses.to(scope, Unprocessable(faults=refused[:MAX_FAULTS]))(scope, receive, send)
                return
            for path in unchanged:
                _remove(body, path)
            raw = json.dumps(body).encode()
        for message in answer:
            await send(message)

    async def _attempt(
        self, scope: Scope, raw: bytes, receive: Receive, send: Send
    ) -> tuple[Unprocessable | None, list[Message]]:
        """Sends the answer, except one that refuses the body's fields: that and its error are returned."""
        state = scope.setdefault("state", {})
        state.pop(FAILED_VALIDATION, None)
        withheld: list[Message] = []

        async def withhold(message: Message) -> None:
            if FAILED_VALIDATION in state:
                withheld.append(message)
            else:
                await send(message)

        await self._app(scope, replay(raw, receive), withhold)
        return state.pop(FAILED_VALIDATION, None), withheld

    async def _shown(self, scope: Scope, receive: Receive) -> Any:
        """The resource as GET answers it to this caller; `_ABSENT` where they cannot read it."""
        path: str = scope["path"]
        for prefix, elsewhere in self._shown_elsewhere.items():
            if path.startswith(prefix):
                path = elsewhere + path.removeprefix(prefix)
        shown = await self._read(scope, path, receive)
        if shown is not _ABSENT:
            return shown
        parent, _, last = scope["path"].rstrip("/").rpartition("/")
        for path in (parent, parent + "/"):
            around = await self._read(scope, path, receive)
            if around is not _ABSENT:
                return _named(around, unquote(last))
        return _ABSENT

    async def _read(self, scope: Scope, path: str, receive: Receive) -> Any:
        state = {**scope["state"], "told": {}}
        headers = [(name, value) for name, value in scope["headers"] if name not in _OF_THE_UPDATE]
        kept = ("app", "type", "asgi", "http_version", "scheme", "client", "server", "root_path", "extensions")
        reading: Scope = {name: scope[name] for name in kept if name in scope}
        reading = {**reading, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        status, parts = 0, []

        async def collect(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                parts.append(message.get("body", b""))

        await self._app({**reading, "headers": headers, "state": state}, replay(b"", receive), collect)
        return _parsed(b"".join(parts)) if status == 200 else _ABSENT

    def _unchanged(self, path: Path, body: Any, shown: Any) -> bool:
        current = _at(shown, path)
        return current is not _ABSENT and (path[0] in self._moving or same(_at(body, path), current))


def same(sent: Any, shown: Any) -> bool:
    """Whether two JSON values mean the same: timestamps and UUIDs are compared as values, not as text."""
    if isinstance(sent, str) and isinstance(shown, str):
        return sent == shown or _same_moment(sent, shown) or _same_id(sent, shown)
    if isinstance(sent, dict) and isinstance(shown, dict):
        return sent.keys() == shown.keys() and all(same(value, shown[name]) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(shown, list):
        return len(sent) == len(shown) and all(map(same, sent, shown))
    return isinstance(sent, bool) is isinstance(shown, bool) and bool(sent == shown)


def _same_moment(sent: str, shown: str) -> bool:
    """Many languages keep milliseconds only: a time that was cut to them is the same one."""
    try:
        one, other = datetime.fromisoformat(sent), datetime.fromisoformat(shown)
        return one == other or one == other.replace(microsecond=other.microsecond // 1000 * 1000)
    except (ValueError, TypeError):
        return False


def _same_id(sent: str, shown: str) -> bool:
    try:
        return UUID(sent) == UUID(shown)
    except ValueError:
        return False


def _removable(fault: FieldFault, body: Any) -> Path | None:
    """The refused field, if the operation does not take it, or if it is a null that stands for "there is none"."""
    if not isinstance(fault, ParameterFault) or fault.loc[0] != "body":
        return None
    path = fault.loc[1:]
    return path if path and (fault.kind == _UNKNOWN_FIELD or _at(body, path) is None) else None


def _explained(fault: FieldFault, shown: Any) -> FieldFault:
    if not isinstance(fault, ParameterFault) or fault.kind != _UNKNOWN_FIELD or _at(shown, fault.loc[1:]) is _ABSENT:
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
    holder = _at(body, path[:-1])
    if isinstance(holder, dict):
        holder.pop(path[-1], None)


def _named(around: Any, name: str) -> Any:
    """The item of a list, bare or in its envelope, that has this name or id; else the part of this name, or all."""
    lists = [around] if isinstance(around, list) else [value for value in around.values() if isinstance(value, list)]
    for item in (item for items in lists for item in items if isinstance(item, dict)):
        if any(isinstance(value, str) and same(name, value) for value in item.values()):
            return item
    if isinstance(around, list):
        return _ABSENT
    part = around.get(name.replace("-", "_"))
    return part if isinstance(part, dict) else around


def _parsed(raw: bytes) -> Any:
    """A JSON object or array."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return _ABSENT
    return value if isinstance(value, (dict, list)) else _ABSENT


async def _whole(receive: Receive) -> bytes:
    """The body, whose size the front has bounded."""
    parts = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return b"".join(parts)
