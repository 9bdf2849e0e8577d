"""The texts that a draft is tried on: in a JSON body, or as a file of JSON lines. Held in memory, never on a disk."""

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
from gatehouse.platform.governance.dlp_fields import LONGEST_TEXT
from gatehouse.platform.governance.dlp_trials.schemas import Draft, NewReplay
from gatehouse.platform.governance.replays.schemas import Recorded

MOST_SAMPLES: Final = 10_000
MOST_BYTES: Final = 10_000_000
#: Lines between two turns for everybody else.
_LINES_A_TURN: Final = 200


class Sample(msgspec.Struct, frozen=True):
    text: str
    id: str | int | None = None


class TooLarge(PayloadTooLarge):
    message = f"Samples may have {MOST_BYTES} bytes together."


class BadForm(BadRequest):
    message = "The form cannot be read: send the parts `file` (JSON lines) and `draft` (JSON)."


_line: Final = msgspec.json.Decoder(Sample | str)


async def read(request: Request) -> tuple[Draft, list[Sample] | Recorded]:
    """The draft, and texts to try it on, or which of the organization's own samples. Raises `Unprocessable` that names
    the field or the line, `TooLarge`, `BadForm`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data":
        return await _form(request)
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise TooLarge
    replay = _validated(NewReplay, body)
    if replay.recorded is not None and replay.samples is None:
        return replay, replay.recorded
    if replay.samples is None or replay.recorded is not None:
        raise Unprocessable(faults=[FieldFault("samples", "send either `samples` or `recorded`")])
    _bounded(len(replay.samples), "samples")
    samples = [
        Sample(sample) if isinstance(sample, str) else Sample(sample.text, sample.id) for sample in replay.samples
    ]
    return replay, samples


async def _form(request: Request) -> tuple[Draft, list[Sample]]:
    parser = MultiPartParser(request.headers, request.stream(), max_files=2, max_fields=1, max_part_size=MOST_BYTES)
    # Never spooled to a file: samples may hold what must not lie about.
    parser.spool_max_size = MOST_BYTES * 2
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadForm(f"The form cannot be read: {error.message}") from None
    try:
        file, draft = form.get("file"), form.get("draft")
        if not isinstance(file, UploadFile):
            raise Unprocessable(faults=[FieldFault("file", "Field required: a file of JSON lines")])
        told = await draft.read() if isinstance(draft, UploadFile) else (draft or "{}").encode(errors="replace")
        content = await file.read()
    finally:
        await form.close()
    if len(content) > MOST_BYTES or len(told) > MOST_BYTES:
        raise TooLarge
    return _validated(Draft, told, "draft"), await _lines(content)


async def _lines(content: bytes) -> list[Sample]:
    samples: list[Sample] = []
    for number, line in enumerate(io.BytesIO(content), 1):
        if line.strip():
            samples.append(_sample(line, f"file.{number}"))
        if number % _LINES_A_TURN == 0:
            _bounded(len(samples), "file")
            await asyncio.sleep(0)
    _bounded(len(samples), "file")
    return samples


def _sample(line: bytes, place: str) -> Sample:
    try:
        read = _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        told = f"is neither a JSON text nor an object with `text`: {why}"
        raise Unprocessable(faults=[FieldFault(place, told)]) from None
    sample = Sample(read) if isinstance(read, str) else read
    if len(sample.text) > LONGEST_TEXT:
        raise Unprocessable(faults=[FieldFault(place, f"a text may have {LONGEST_TEXT} characters")])
    return sample


def _bounded(samples: int, field: str) -> None:
    if samples > MOST_SAMPLES:
        raise Unprocessable(faults=[FieldFault(field, f"may hold {MOST_SAMPLES} samples")])


def _validated(kind: type[Any], body: bytes, prefix: str | None = None) -> Any:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        if prefix is None and errors[0]["type"] == "json_invalid":
            raise MalformedBody from None
        raise Unprocessable(faults=list(_faults(errors, prefix))) from None


def _faults(errors: Sequence[Any], prefix: str | None) -> Iterator[FieldFault]:
    for error in errors:
        place = ("body", *((prefix,) if prefix else ()), *map(str, error["loc"]))
        yield ParameterFault(place, str(error["msg"]).removeprefix("Value error, "))
