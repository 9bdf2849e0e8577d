"""Reads and validates the lines of a new batch. Each body is decoded like the body of a single call."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Identified
from gatehouse.foundation.errors import BadRequest, Refusal
from gatehouse.ingress.gateway import MODEL_CALLS
from gatehouse.platform.batches.creation.estimates import estimate_call
from gatehouse.policy.budgets import CallAmounts

#: The path of the calls of a batch in Anthropic's form.
MESSAGES_ENDPOINT: Final = "/v1/messages"

_MAX_CUSTOM_ID_CHARACTERS: Final = 256
#: Control characters and surrogates, which PostgreSQL or JSON cannot store.
_BAD_CUSTOM_ID: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
#: Maximum number of lines, and of bytes, that are read before the event loop runs other tasks.
_LINES_PER_STEP: Final = 20
_BYTES_PER_STEP: Final = 64 * 1024


class InvalidLine(BadRequest):
    """A line of a batch is not valid. `param` identifies the line, and the field in it."""

    code = "invalid_batch_line"

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}", param=place)


class TooManyLines(BadRequest):
    code = "too_many_batch_lines"

    def __init__(self, param: str, limit: int) -> None:
        super().__init__(
            f"A batch may have at most {limit} lines (BATCH_MAX_LINES). Send several batches.", param=param
        )


class EmptyBatch(BadRequest):
    code = "empty_batch"

    def __init__(self, param: str) -> None:
        super().__init__("The batch has no lines. Send at least one.", param=param)


class OpenAILine(msgspec.Struct, forbid_unknown_fields=True):
    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


class MessagesRequest(msgspec.Struct, forbid_unknown_fields=True):
    custom_id: str
    params: msgspec.Raw


class NewLine(msgspec.Struct, frozen=True):
    """A valid line. `body` is the body of its call, and `estimate` the likely cost and tokens."""

    custom_id: str
    body: bytes
    estimate: CallAmounts


_decoder: Final = msgspec.json.Decoder(OpenAILine)


async def of_file(content: bytes, endpoint: str, identified: Identified, limit: int) -> list[NewLine]:
    """Return the lines of a file of JSON lines. Raises `InvalidLine`, `TooManyLines`, `EmptyBatch`."""

    def entries() -> Iterator[tuple[str, str, bytes]]:
        for number, line in enumerate(_split(content), 1):
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                entry = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
                message = f"the line must be an object with custom_id, method, url and body: {why}"
                raise InvalidLine(place, message) from None
            if entry.method != "POST":
                raise InvalidLine(f"{place}.method", "must be POST")
            if entry.url != endpoint:
                raise InvalidLine(f"{place}.url", f"must be the endpoint of the batch, {endpoint}")
            yield place, entry.custom_id, bytes(entry.body)

    return await _validated(entries(), endpoint, identified, limit=limit, body_name="body", param="input_file_id")


async def of_requests(requests: Iterable[MessagesRequest], identified: Identified, limit: int) -> list[NewLine]:
    """Return the lines of Anthropic's `requests`. Raises `InvalidLine`, `TooManyLines`, `EmptyBatch`."""
    entries = (
        (f"requests.{index}", request.custom_id, bytes(request.params)) for index, request in enumerate(requests)
    )
    return await _validated(entries, MESSAGES_ENDPOINT, identified, limit=limit, body_name="params", param="requests")


async def _validated(
    entries: Iterator[tuple[str, str, bytes]],
    endpoint: str,
    identified: Identified,
    *,
    limit: int,
    body_name: str,
    param: str,
) -> list[NewLine]:
    dialect = DIALECTS[MODEL_CALLS[endpoint]]
    headers = identified.received.headers
    lines: list[NewLine] = []
    places: dict[str, str] = {}
    step_lines = step_bytes = 0
    for place, custom_id, body in entries:
        if len(lines) >= limit:
            raise TooManyLines(param, limit)
        _check_custom_id(place, custom_id)
        if custom_id in places:
            raise InvalidLine(f"{place}.custom_id", f"{places[custom_id]} has the same custom_id")
        places[custom_id] = place
        try:
            call = dialect.decode(body, headers)
        except Refusal as error:
            field = error.extra.get("param")
            raise InvalidLine(f"{place}.{body_name}.{field}" if field else f"{place}.{body_name}", error.text) from None
        if call.stream:
            raise InvalidLine(f"{place}.{body_name}.stream", "must not be true, because a batch has no streams")
        lines.append(NewLine(custom_id, body, estimate_call(identified, call)))
        step_lines += 1
        step_bytes += len(body)
        if step_lines >= _LINES_PER_STEP or step_bytes >= _BYTES_PER_STEP:
            step_lines = step_bytes = 0
            await asyncio.sleep(0)
    if not lines:
        raise EmptyBatch(param)
    return lines


def _check_custom_id(place: str, custom_id: str) -> None:
    if not custom_id or len(custom_id) > _MAX_CUSTOM_ID_CHARACTERS or _BAD_CUSTOM_ID.search(custom_id):
        message = f"must have 1 to {_MAX_CUSTOM_ID_CHARACTERS} characters, and no control characters"
        raise InvalidLine(f"{place}.custom_id", message)


def _split(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a file, without a copy of the whole file."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield content[start:end]
        start = end + 1
