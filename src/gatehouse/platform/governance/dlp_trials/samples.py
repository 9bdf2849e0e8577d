"""Parses the texts of a replay from a JSON body or a file of JSON lines. The texts stay in memory and are never written
to disk."""

import asyncio
import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from gatehouse.foundation.errors import BadRequest, FieldFault, PayloadTooLarge, Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault
from gatehouse.foundation.http.handlers import MalformedBody
from gatehouse.platform.governance.dlp_fields import MAX_TEXT_CHARACTERS
from gatehouse.platform.governance.dlp_trials.schemas import Draft, NewReplay
from gatehouse.platform.governance.replays.schemas import Recorded

MAX_SAMPLES: Final = 10_000
MAX_BODY_BYTES: Final = 10_000_000
#: Number of lines that are parsed before the event loop runs other tasks.
_LINES_PER_BATCH: Final = 200


class TextSample(msgspec.Struct, frozen=True):
    text: str
    id: str | int | None = None


class SamplesTooLarge(PayloadTooLarge):
    message = f"The samples exceed the limit of {MAX_BODY_BYTES} bytes."


class MalformedSampleForm(BadRequest):
    message = "The form cannot be read: send the parts `file` (JSON lines) and `draft` (JSON)."


_line_decoder: Final = msgspec.json.Decoder(TextSample | str)


async def read(request: Request) -> tuple[Draft, list[TextSample] | Recorded]:
    """Return the draft, and either the texts that were sent or the selection of recorded samples (`recorded`). Raises
    `Unprocessable` with the name of the field or the line, `SamplesTooLarge`, `MalformedSampleForm`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data":
        return await _form(request)
    body = await request.body()
    if len(body) > MAX_BODY_BYTES:
        raise SamplesTooLarge
    replay = _validated(NewReplay, body)
    if replay.recorded is not None and replay.samples is None:
        return replay, replay.recorded
    if replay.samples is None or replay.recorded is not None:
        raise Unprocessable(faults=[FieldFault("samples", "send either `samples` or `recorded`")])
    _check_count(len(replay.samples), "samples")
    samples = [
        TextSample(sample) if isinstance(sample, str) else TextSample(sample.text, sample.id)
        for sample in replay.samples
    ]
    return replay, samples


async def _form(request: Request) -> tuple[Draft, list[TextSample]]:
    parser = MultiPartParser(request.headers, request.stream(), max_files=2, max_fields=1, max_part_size=MAX_BODY_BYTES)
    # The limit is above the maximum size, so that the file is never spooled to disk. Samples may be confidential.
    parser.spool_max_size = MAX_BODY_BYTES * 2
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise MalformedSampleForm(f"The form cannot be read: {error.message}") from None
    try:
        file, draft = form.get("file"), form.get("draft")
        if not isinstance(file, UploadFile):
            raise Unprocessable(faults=[FieldFault("file", "Field required: a file of JSON lines")])
        draft_json = await draft.read() if isinstance(draft, UploadFile) else (draft or "{}").encode(errors="replace")
        content = await file.read()
    finally:
        await form.close()
    if len(content) > MAX_BODY_BYTES or len(draft_json) > MAX_BODY_BYTES:
        raise SamplesTooLarge
    return _validated(Draft, draft_json, "draft"), await _lines(content)


async def _lines(content: bytes) -> list[TextSample]:
    samples: list[TextSample] = []
    for number, line in enumerate(io.BytesIO(content), 1):
        if line.strip():
            samples.append(_sample(line, f"file.{number}"))
        if number % _LINES_PER_BATCH == 0:
            _check_count(len(samples), "file")
            await asyncio.sleep(0)
    _check_count(len(samples), "file")
    return samples


def _sample(line: bytes, field: str) -> TextSample:
    try:
        value = _line_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        message = f"is neither a JSON string nor an object with `text`: {why}"
        raise Unprocessable(faults=[FieldFault(field, message)]) from None
    sample = TextSample(value) if isinstance(value, str) else value
    if len(sample.text) > MAX_TEXT_CHARACTERS:
        raise Unprocessable(faults=[FieldFault(field, f"a text may have at most {MAX_TEXT_CHARACTERS} characters")])
    return sample


def _check_count(samples: int, field: str) -> None:
    if samples > MAX_SAMPLES:
        raise Unprocessable(faults=[FieldFault(field, f"may contain at most {MAX_SAMPLES} samples")])


def _validated(body_type: type[Any], body: bytes, prefix: str | None = None) -> Any:
    try:
        return body_type.model_validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        if prefix is None and errors[0]["type"] == "json_invalid":
            raise MalformedBody from None
        raise Unprocessable(faults=list(_faults(errors, prefix))) from None


def _faults(errors: Sequence[Any], prefix: str | None) -> Iterator[FieldFault]:
    for error in errors:
        path = ("body", *((prefix,) if prefix else ()), *map(str, error["loc"]))
        yield ParameterFault(path, str(error["msg"]).removeprefix("Value error, "))
