"""Runs one line of a batch as a call of its creator, and returns its result."""

import time
from collections.abc import Callable
from typing import Any, Final

from gatehouse.engine.conversation.conversion.lost import HEADER as DROPPED
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answer, HostContext, Received
from gatehouse.engine.routing.failed_attempts import AllProvidersFailed
from gatehouse.foundation.counters import RateState
from gatehouse.foundation.identity import Caller
from gatehouse.ingress.gateway import MODEL_CALLS
from gatehouse.platform.batches.results import rendering
from gatehouse.platform.batches.storage.contents import BatchContents
from gatehouse.platform.batches.storage.table import BatchRow
from gatehouse.platform.request.ports import Host

#: The paths under which the calls of batches are recorded, by the batch's API.
RECORDED_PATHS: Final = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}
#: Lines are not counted against rate limits, and no response contains this state.
_NOT_COUNTED: Final = RateState(limit=0, remaining=0, reset=0)
_OK: Final = 200


async def run_line(
    host: Host,
    batch: BatchRow,
    line: Any,
    *,
    contents: BatchContents,
    caller: Caller,
    release_advance: Callable[[], None],
) -> dict[str, Any]:
    """Call the model, and return the values for `statements.store_result`. A refusal is a result too."""
    received = Received(
        request_id=rendering.request_id(batch.api, batch.id, line.number),
        method="POST",
        path=RECORDED_PATHS[batch.api],
        headers=batch.headers,
        client_address=batch.ip,
        received_at=time.time(),
        started=time.monotonic(),
        dialect=MODEL_CALLS[batch.endpoint],
        body=contents.open(line.request, "request", line.number),
    )
    with host.calls.one() as call:
        answer = await host.engine.answer(
            received,
            on_admitted=call.let_in,
            caller=caller,
            host=HostContext(rate=_NOT_COUNTED, release_advance=release_advance),
        )
    status, result = _rendered(batch, line, answer)
    return {
        "status": "succeeded" if status == _OK else "errored",
        "succeeded": int(status == _OK),
        "result": contents.seal(result, "result", line.number),
        "result_bytes": len(result) + 1,
        **_usage(answer),
    }


def _rendered(batch: BatchRow, line: Any, answer: Answer) -> tuple[int, bytes]:
    """Return the HTTP status of the answer, and the result of the line."""
    place: tuple[str, Any, int, str] = (batch.api, batch.id, line.number, line.custom_id)
    try:
        return answer.status, rendering.answered(
            *place, status=answer.status, body=answer.body, dropped=answer.headers.get(DROPPED, "")
        )
    except rendering.UnreadableAnswer:
        error = AllProvidersFailed("The provider's answer cannot be read.")
        body = DIALECTS[MODEL_CALLS[batch.endpoint]].render_error(error)
        return error.status, rendering.answered(*place, status=error.status, body=body)


def _usage(answer: Answer) -> dict[str, Any]:
    """Return the tokens and the cost of the call, as in its usage record."""
    exchange = answer.exchange
    usage = None if exchange is None else exchange.usage
    if exchange is None or usage is None:
        return {"input_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "cost_usd": "0"}
    return {
        "input_tokens": usage.input_tokens + usage.cache_write_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": exchange.cost_text or "0",
    }


def released_once(release: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `release` at its first call only."""
    done = False

    def call_once() -> None:
        nonlocal done
        if not done:
            done = True
            release()

    return call_once
