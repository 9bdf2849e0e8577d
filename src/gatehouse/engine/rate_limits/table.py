r"""The table of rate limits by path: the defaults, overridden by `RATE_LIMIT_TIERS`.

A key is a path or `METHOD path`. The path of a key with a method may be a pattern. `{name}` in a pattern stands for one
segment, and a path with any of `* + ? [ ( | \ ^ $` is a regular expression (RE2) for the whole path. Patterns are tried
first, the longest first. Then an exact path takes precedence over a prefix. Prefixes consist of whole segments, so
`/v1/chat` matches `/v1/chat/completions` but not `/v1/chats`. A trailing slash is ignored.
"""

import re
from typing import Any, Final, Protocol

import msgspec
import re2

from gatehouse.foundation.settings import BadSettings

#: Requests a minute (docs/rate-limits.md). The limit of the health probes equals that of an administrator.
DEFAULTS: Final = {
    "/api/auth/login": 100,
    "/api/auth/register": 10,
    "/api/auth/refresh": 30,
    # The sign-in pages and their assets. Password attempts on these pages are treated as attempts at /api/auth/login.
    "/login": 300,
    # The console's files, and the exchange of the console's session cookie. Many people can share an address.
    "/console": 1200,
    "POST /api/auth/session/token": 300,
    # Many jobs with tokens of their own can share an address.
    "POST /oauth/token": 600,
    "/api/conversations/shared/": 30,
    "POST /api/conversations/{id}/messages": 60,
    "POST /api/admin/dlp-rules/test": 10,
    "POST /api/admin/mail/test": 5,
    "/api/health/live": 600,
    "/api/health/ready": 600,
    "/api/health/startup": 600,
}

_PARAMETER: Final = re.compile(r"\{[^{}/]*\}")
_EXPRESSION_CHARACTERS: Final = frozenset("*+?[(|\\^$")
_MAX_EXPRESSION_CHARACTERS: Final = 200
_MAX_EXPRESSION_BYTES: Final = 1 << 20


class PathPattern(Protocol):
    def fullmatch(self, path: str, /) -> object: ...


class LimitEntry(msgspec.Struct, frozen=True, gc=False):
    """One row of the table. `method` is empty for all methods. `tier` is the key as it is written in the setting.
    `pattern` is None for a plain path."""

    method: str
    path: str
    limit: int
    tier: str
    pattern: PathPattern | None = None


class LimitTable:
    """The rate limits by method and path. `find` tries the patterns, and then needs only a few look-ups, whatever the
    size of the table."""

    def __init__(self, general: int, entries: list[LimitEntry]) -> None:
        self.general = LimitEntry("", "", general, "general")
        self._plain = {(entry.method, entry.path): entry for entry in entries if entry.pattern is None}
        # Longer patterns are tried first because they are more specific.
        patterns = [(entry, entry.pattern) for entry in entries if entry.pattern is not None]
        self._patterns = sorted(patterns, key=lambda pair: len(pair[0].path), reverse=True)

    @classmethod
    def build(cls, general: int, overrides: str) -> "LimitTable":
        """Return the table with `overrides`, a JSON object. Raises `BadSettings` with one line for each faulty
        entry."""
        entries = {(entry.method, entry.path): entry for entry in map(_entry, DEFAULTS, DEFAULTS.values())}
        faults = []
        for key, limit in _decoded(overrides).items():
            try:
                entry = _entry(key, limit)
            except ValueError as error:
                faults.append(f"RATE_LIMIT_TIERS: {key!r}: {error}")
            else:
                entries[entry.method, entry.path] = entry
        if faults:
            raise BadSettings("\n".join(faults))
        return cls(general, list(entries.values()))

    def find(self, method: str, path: str) -> LimitEntry:
        """Return the entry for a request. The module's docstring describes the precedence. `path` has no trailing
        slash."""
        for entry, pattern in self._patterns:
            if entry.method == method and pattern.fullmatch(path):
                return entry
        return self._longest(method, path) or self._longest("", path) or self.general

    def _longest(self, method: str, path: str) -> LimitEntry | None:
        """Return the entry of the path itself, or else of its longest prefix."""
        while path:
            entry = self._plain.get((method, path))
            if entry is not None:
                return entry
            path = path.rpartition("/")[0]
        return self._plain.get((method, "/"))


def _decoded(overrides: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(overrides, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadSettings(f"RATE_LIMIT_TIERS: not a JSON object of paths: {error}") from None


def _entry(key: str, limit: Any) -> LimitEntry:
    """Parse one key and its limit. Raises `ValueError` with a description of the fault."""
    method, _, path = key.strip().rpartition(" ")
    method = method.strip().upper()
    path = path.removeprefix("^")
    if not path.startswith("/"):
        raise ValueError("a path must begin with /")
    if method and not method.isalpha():
        raise ValueError("write a path, or a method, a space and a path")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"must be a positive integer, not {limit!r}")
    if not _EXPRESSION_CHARACTERS.isdisjoint(path):
        if not method:
            raise ValueError("a pattern needs a method before it")
        return LimitEntry(method, path, limit, key.strip(), _expression(path))
    # The name of a parameter is ignored: `{id}` and `{conversation_id}` give the same entry.
    normal = _PARAMETER.sub("{}", path).rstrip("/") or "/"
    if "{" in normal and not method:
        raise ValueError("a path with a parameter needs a method before it")
    return LimitEntry(method, normal, limit, key.strip(), _template(normal) if "{" in normal else None)


def _template(path: str) -> PathPattern:
    return re.compile("[^/]+".join(re.escape(part) for part in path.split("{}")))


def _expression(path: str) -> PathPattern:
    """Compile an RE2 expression. RE2 matches in time linear in the length of the path. Raises `ValueError`."""
    if len(path) > _MAX_EXPRESSION_CHARACTERS:
        raise ValueError(f"a pattern has {_MAX_EXPRESSION_CHARACTERS} characters at most")
    options = re2.Options()
    options.max_mem, options.log_errors = _MAX_EXPRESSION_BYTES, False
    try:
        pattern: PathPattern = re2.compile(path, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be compiled"
        raise ValueError(
            f"not a regular expression: {reason.decode() if isinstance(reason, bytes) else reason}"
        ) from None
    return pattern
