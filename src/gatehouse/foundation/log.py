"""Logs on standard error. Each line is one JSON object with the id of the request and without secrets.

The log lines of libraries (uvicorn, alembic) pass through the same processors. A value whose name or form is that of a
secret is redacted. This is only a second protection: code must not log secrets.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Final, Literal, TextIO

import structlog
from structlog.typing import Processor

REDACTED: Final = "[redacted]"

#: the current request's id, set by the outermost layer of each application
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_MAX_DEPTH: Final = 6
_MAX_TEXT_CHARACTERS: Final = 16_384

_secret_name = re.compile(
    r"pass(word|wd|phrase)|secret|authorization|cookie|credential|api[_-]?key|private[_-]?key|master[_-]?key"
    r"|client[_-]?key|assertion|(^|[_-])(token|otp|pin|jwt|saml_?response)$",
    re.IGNORECASE,
).search
#: matches names of values that are no secrets although `_secret_name` matches them
_plain_name = re.compile(r"(_id|_ids|_prefix|_type|_count|_at|_ttl_seconds)$", re.IGNORECASE).search

_SECRET_TEXTS: Final = (
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\bgk_[0-9A-Za-z]{6,}"), f"gk_{REDACTED}"),
    (re.compile(r"\b(inv|rt|scim|whsec)_[0-9A-Za-z]{16,}"), rf"\1_{REDACTED}"),
    # The tokens of `tokens.mint_token` with other prefixes.
    (re.compile(r"\b([a-z]{2,8})_[0-9A-Za-z]{43}\b"), rf"\1_{REDACTED}"),
    (re.compile(r"\bsk-[0-9A-Za-z_-]{6,}"), f"sk-{REDACTED}"),
    (re.compile(r"\$argon2(id|i|d)\$[^\s'\",)]+"), REDACTED),
    # PostgreSQL's errors contain the whole row that violates a constraint.
    (
        re.compile(
            r"^(DETAIL|CONTEXT):\s.*?(?=\n(?:HINT:|\[SQL|\(Background|\s*The above|\s*During|Traceback)|\Z)",
            re.MULTILINE | re.DOTALL,
        ),
        rf"\1: {REDACTED}",
    ),
    (re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
    (re.compile(r"\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]*)?"), REDACTED),
    (re.compile(r"(://[^\s:/@]{0,256}):[^\s/@]{1,1024}@"), rf"\1:{REDACTED}@"),
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,40}PRIVATE KEY-----)?"), REDACTED),
    (
        re.compile(
            r"\b(password|secret|api_?key|access_token|refresh_token)(\"?\s{0,3}[=:]\s{0,3}\"?)[^\s&,;\"']{1,1024}",
            re.IGNORECASE,
        ),
        rf"\1\2{REDACTED}",
    ),
)  # fmt: skip


def without_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redacts secrets in a log event. This is a structlog processor."""
    return {name: _redacted_value(name, value, 0) for name, value in event.items()}


def redacted(text: str) -> str:
    """Returns a text in which everything that has the form of a secret is redacted. The text is truncated to 16,384
    characters."""
    text = text[:_MAX_TEXT_CHARACTERS]
    for pattern, replacement in _SECRET_TEXTS:
        text = pattern.sub(replacement, text)
    return text


def _redacted_value(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if _secret_name(name) and not _plain_name(name):
        return REDACTED
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if depth == _MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _redacted_value(str(key), inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted_value(name, inner, depth + 1) for inner in value]
    return redacted(str(value))


def _with_request_id(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (current := request_id.get()) is not None:
        event.setdefault("request_id", current)
    return event


def configure(level: Literal["debug", "info", "warning", "error"] = "info", stream: TextIO | None = None) -> None:
    """Configures logging. Call it once in each process, before the first log line. Lines have `timestamp`, `level`,
    `event` and the fields that the caller passes. Lines of libraries also have `logger`."""
    out = stream or sys.stderr
    shared_processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_request_id,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain tracebacks: structured ones contain local variables, which may be passwords.
        structlog.processors.format_exc_info,
    ]
    final_processors: list[Processor] = [
        without_secrets,
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
    ]

    structlog.configure(
        processors=[*shared_processors, *final_processors],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared_processors],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final_processors],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic"):
        library = logging.getLogger(name)
        library.handlers = []
        library.propagate = True
        # Undo the library's own configuration.
        library.setLevel(logging.NOTSET)
        library.disabled = False
    # alembic logs several lines at every start.
    logging.getLogger("alembic").setLevel(max(logging.WARNING, root.level))
    # Usage records and audit events contain the caller and the request id. uvicorn's access log lacks both.
    logging.getLogger("uvicorn.access").disabled = True
    # On a lower level SQLAlchemy logs the values of parameters.
    logging.getLogger("sqlalchemy.engine").setLevel("WARNING")
