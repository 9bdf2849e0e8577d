"""A request's place in a distributed trace (W3C Trace Context): what comes in with it, and what goes on to providers.

Nothing is exported here. While a request runs only moments are noted; spans are made of them when it is over.
"""

import os
import random
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gatehouse.policy.records import ModelRecord, ProviderRecord

#: A version from the future may carry more behind the flags.
_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
).fullmatch
#: As much of `tracestate` as has to be passed on.
_LONGEST_STATE: Final = 512
_SAMPLED: Final = 1

NO_HEADERS: Final[Mapping[str, str]] = {}


class Call(msgspec.Struct, kw_only=True):
    """One try at a provider. `started` and `ended` are monotonic; `ended` is None while it goes on. `failed` is a short
    word, None for a good one."""

    span_id: bytes
    provider: ProviderRecord
    model: ModelRecord
    started: float
    ended: float | None = None
    status: int | None = None
    failed: str | None = None


class Trace(msgspec.Struct, kw_only=True):
    """One request's. Not `sampled`: its context goes on, and nothing is exported."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    sampled: bool
    state: str | None
    calls: list[Call] = []

    def call(self, provider: ProviderRecord, model: ModelRecord, started: float) -> Call:
        made = Call(span_id=os.urandom(8), provider=provider, model=model, started=started)
        self.calls.append(made)
        return made

    def headers(self, call: Call) -> Mapping[str, str]:
        """What a provider is told."""
        context = f"00-{self.trace_id.hex()}-{call.span_id.hex()}-{self.sampled:02x}"
        return {"traceparent": context} if self.state is None else {"traceparent": context, "tracestate": self.state}


def begin(headers: Mapping[str, str], ratio: float) -> Trace | None:
    """The caller's trace goes on, sampled as it says. Without one `ratio` (0 to 1) of the requests begin their own."""
    found = _PARENT(headers.get("traceparent", ""))
    if found is None or (found[1] == "00" and found[5]):
        if ratio < 1 and random.random() >= ratio:  # noqa: S311 - chooses samples
            return None
        return Trace(trace_id=os.urandom(16), span_id=os.urandom(8), parent_id=None, sampled=True, state=None)
    state = headers.get("tracestate")
    return Trace(
        trace_id=bytes.fromhex(found[2]),
        span_id=os.urandom(8),
        parent_id=bytes.fromhex(found[3]),
        sampled=bool(int(found[4], 16) & _SAMPLED),
        state=state if state and len(state) <= _LONGEST_STATE else None,
    )
