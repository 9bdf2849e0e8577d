"""The context of a request in a distributed trace (W3C Trace Context). It is received with the request, and sent on to
providers.

Nothing is exported here. While a request runs, only times are recorded. Spans are created from them after its end.
"""

import os
import random
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gatehouse.policy.catalog import ModelRecord, ProviderRecord

#: Matches the header `traceparent`. Later versions of the format may append fields after the flags.
_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
).fullmatch
#: Longest `tracestate` that is sent on. The specification permits dropping a longer one.
_MAX_STATE_CHARACTERS: Final = 512
_SAMPLED_FLAG: Final = 1

NO_HEADERS: Final[Mapping[str, str]] = {}


class TracedCall(msgspec.Struct, kw_only=True):
    """One attempt at a provider. `started` and `ended` are monotonic times; `ended` is None while the attempt is in
    progress. `failed` is a short word for the failure, or None for a success."""

    span_id: bytes
    provider: ProviderRecord
    model: ModelRecord
    started: float
    ended: float | None = None
    status: int | None = None
    failed: str | None = None


class Trace(msgspec.Struct, kw_only=True):
    """The trace context of one request. If not `sampled`, the context is sent on and nothing is exported."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    sampled: bool
    state: str | None
    calls: list[TracedCall] = []

    def call(self, provider: ProviderRecord, model: ModelRecord, started: float) -> TracedCall:
        """Add an attempt, and return its record."""
        call = TracedCall(span_id=os.urandom(8), provider=provider, model=model, started=started)
        self.calls.append(call)
        return call

    def headers(self, call: TracedCall) -> Mapping[str, str]:
        """Return the headers with the trace context for the provider."""
        context = f"00-{self.trace_id.hex()}-{call.span_id.hex()}-{self.sampled:02x}"
        return {"traceparent": context} if self.state is None else {"traceparent": context, "tracestate": self.state}


def begin(headers: Mapping[str, str], ratio: float) -> Trace | None:
    """Continue the caller's trace, with its sampling decision. For requests without a trace, begin a trace for a share
    `ratio` (0 to 1) of them."""
    parent = _PARENT(headers.get("traceparent", ""))
    if parent is None or (parent[1] == "00" and parent[5]):
        if ratio < 1 and random.random() >= ratio:  # noqa: S311 - selects samples
            return None
        return Trace(trace_id=os.urandom(16), span_id=os.urandom(8), parent_id=None, sampled=True, state=None)
    state = headers.get("tracestate")
    return Trace(
        trace_id=bytes.fromhex(parent[2]),
        span_id=os.urandom(8),
        parent_id=bytes.fromhex(parent[3]),
        sampled=bool(int(parent[4], 16) & _SAMPLED_FLAG),
        state=state if state and len(state) <= _MAX_STATE_CHARACTERS else None,
    )
