"""The table of path limits: the reference's rows, with `RATE_LIMIT_TIERS` laid over them.

A key is a path or `METHOD path`. `{name}` in the path of a key with a method stands for one segment. A path that a key
names exactly wins over one under which the request's path lies; whole segments count, so `/v1/chat` holds
`/v1/chat/completions` and not `/v1/chats`. A trailing slash makes no difference.
"""

import re
from typing import Any, Final

import msgspec

from gatehouse.foundation.settings import BadSettings

#: Requests a minute (reference 1, Rate limiting on the platform, the table; the probes: as many as an admin's; the
#: sign-in pages).
DEFAULTS: Final = {
    "/api/auth/login": 100,
    "/api/auth/register": 10,
    "/api/auth/refresh": 30,
    # The pages and what they are made of; passwords that are tried there count as at /api/auth/login.
    "/login": 300,
    "/api/conversations/shared/": 30,
    "POST /api/conversations/{id}/messages": 60,
    "POST /api/admin/dlp-rules/test": 10,
    "/api/health/live": 600,
    "/api/health/ready": 600,
    "/api/health/startup": 600,
}

_PARAMETER: Final = re.compile(r"\{[^{}/]*\}")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """`method` is empty for any; `tier` is the key as the table's author wrote it."""

    method: str
    path: str
    limit: int
    tier: str


class LimitTable:
    """`find` costs a few look-ups, whatever the size of the table, but for its patterns."""

    def __init__(self, general: int, entries: list[Entry]) -> None:
        self.general = Entry("", "", general, "general")
        self._plain = {(entry.method, entry.path): entry for entry in entries if "{" not in entry.path}
        # The more of a pattern is literal, the more it means this path.
        patterns = sorted((e for e in entries if "{" in e.path), key=lambda e: len(e.path), reverse=True)
        self._patterns = [(entry, _pattern(entry.path)) for entry in patterns]

    @classmethod
    def build(cls, general: int, overrides: str) -> "LimitTable":
        """`overrides` is a JSON object. Raises `BadSettings` with a line a fault."""
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

    def find(self, method: str, path: str) -> Entry:
        """`path` without a trailing slash. Precedence: reference 1, Rate limiting on the platform, 4."""
        for entry, pattern in self._patterns:
            if entry.method == method and pattern.fullmatch(path):
                return entry
        return self._longest(method, path) or self._longest("", path) or self.general

    def _longest(self, method: str, path: str) -> Entry | None:
        """The entry for the path itself, else for the nearest path above it."""
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


def _entry(key: str, limit: Any) -> Entry:
    """Raises ValueError saying what is wrong with the pair."""
    method, _, path = key.strip().rpartition(" ")
    method = method.strip().upper()
    if not path.startswith("/"):
        raise ValueError("a path begins with /")
    if method and not method.isalpha():
        raise ValueError("write a path, or a method, a space and a path")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"must be a positive integer, not {limit!r}")
    # The parameter's name says nothing: `{id}` and `{conversation_id}` are one entry.
    normal = _PARAMETER.sub("{}", path).rstrip("/") or "/"
    if "{" in normal and not method:
        raise ValueError("a path with a parameter needs a method before it")
    return Entry(method, normal, limit, key.strip())


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(re.escape(part) for part in path.split("{}")))
