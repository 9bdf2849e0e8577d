"""The sandbox's answers for operations other than chats: whole JSON objects that depend on the request only."""

import base64
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.operations import Operation
from gatehouse.engine.providers.sandbox.content import (
    CREATED_SECONDS,
    EMBEDDING_DIMENSIONS,
    MAX_CHOICES,
    MAX_DIMENSIONS,
    count,
    digest_of,
    vector,
)

_CATEGORIES: Final = (
    "harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
    "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
)  # fmt: skip
#: width and height of an image in pixels
_IMAGE_PIXELS: Final = 16
_IMAGE_TOKENS: Final = 64
_PIECE_BYTES: Final = 4096


def _embeddings(call: ModelCall) -> bytes:
    value = call.body["input"]
    texts = [value] if isinstance(value, str) else [str(item) for item in value]
    dimensions = min(call.body.get("dimensions") or EMBEDDING_DIMENSIONS, MAX_DIMENSIONS)
    vectors = [vector(text, dimensions) for text in texts]
    tokens = sum(map(count, texts))
    return msgspec.json.encode(
        {
            "object": "list",
            "model": call.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": _encoded_vector(values, call.body)}
                for index, values in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def _encoded_vector(values: list[float], body: Mapping[str, Any]) -> Any:
    if body.get("encoding_format") != "base64":
        return values
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def _moderations(call: ModelCall) -> bytes:
    """Return a result for each text, or one for all parts. A text is flagged if it contains the name of a category."""
    value = call.body["input"]
    items = [value] if isinstance(value, str) else value
    texts = [item if isinstance(item, str) else str(item.get("text", "")) for item in items]
    if not any(isinstance(item, str) for item in items):
        texts = [" ".join(texts)]
    return msgspec.json.encode(
        {
            "id": f"modr-{digest_of(' '.join(texts))}",
            "model": call.model,
            "results": [_moderation(text.casefold()) for text in texts],
        }
    )


def _moderation(text: str) -> dict[str, Any]:
    categories = {name: name in text for name in _CATEGORIES}
    return {
        "flagged": any(categories.values()),
        "categories": categories,
        "category_scores": {name: 0.95 if flagged else 0.001 for name, flagged in categories.items()},
        "category_applied_input_types": {name: ["text"] for name in _CATEGORIES},
    }


def _rerank(call: ModelCall) -> bytes:
    """Return the documents by the share of the query's words that they contain."""
    query = call.body["query"]
    words = set(query.casefold().split())
    texts = [item if isinstance(item, str) else item["text"] for item in call.body["documents"]]
    scores = [len(words & set(text.casefold().split())) / max(len(words), 1) for text in texts]
    order = sorted(range(len(texts)), key=lambda index: (-scores[index], index))[: call.body.get("top_n")]
    with_documents = call.body.get("return_documents") is True
    results = [
        {
            "index": index,
            "relevance_score": round(scores[index], 4),
            **({"document": {"text": texts[index]}} if with_documents else {}),
        }
        for index in order
    ]
    tokens = count(query) + sum(map(count, texts))
    return msgspec.json.encode(
        {
            "id": f"rerank-{digest_of(query)}",
            "model": call.model,
            "results": results,
            "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": tokens}},
        }
    )


def _images(call: ModelCall) -> bytes:
    """Return images of one color, which depends on the prompt."""
    prompt = str(call.body.get("prompt", ""))
    images = min(call.body.get("n") or 1, MAX_CHOICES)
    encoded = base64.b64encode(_png(bytes.fromhex(digest_of(prompt))[:3])).decode()
    image = {"url": f"data:image/png;base64,{encoded}"}
    if call.body.get("response_format") != "url":
        image = {"b64_json": encoded}
    if prompt:
        image["revised_prompt"] = prompt
    read, written = count(prompt), images * _IMAGE_TOKENS
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"text_tokens": read, "image_tokens": 0},
        "output_tokens": written,
        "total_tokens": read + written,
    }
    return msgspec.json.encode(
        {"created": CREATED_SECONDS, "data": [image] * images, "output_format": "png", "usage": usage}
    )


def _transcript(call: ModelCall) -> bytes:
    """Return a text that depends on the recording. With `prompt`, it is the prompt, so that any text can be
    tested."""
    prompt = call.body.get("prompt")
    text = prompt or f"A recording of {len(call.files[0].data)} bytes."
    form = call.body.get("response_format")
    if form == "text":
        return f"{text}\n".encode()
    if form == "srt":
        return f"1\n00:00:00,000 --> 00:00:01,000\n{text}\n".encode()
    if form == "vtt":
        return f"WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n{text}\n".encode()
    if form == "verbose_json":
        segment = {"id": 0, "start": 0.0, "end": 1.0, "text": text, "tokens": [1, 2, 3]}
        more: dict[str, Any] = {"task": "transcribe", "language": "english", "duration": 1.0, "segments": [segment]}
        return msgspec.json.encode({**more, "text": text, "usage": {"type": "duration", "seconds": 1}})
    usage = {"type": "tokens", "input_tokens": 10, "output_tokens": count(text), "total_tokens": 10 + count(text)}
    return msgspec.json.encode({"text": text, "usage": usage})


def spoken(call: ModelCall) -> list[bytes]:
    """Return a WAV recording in pieces: silence with a sample for each character of the text."""
    samples = bytes(2 * len(call.body["input"]))
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data",
        len(samples),
    )  # fmt: skip
    pieces = [samples[start : start + _PIECE_BYTES] for start in range(0, len(samples), _PIECE_BYTES)]
    return [head, *pieces]


def _png(color: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", _IMAGE_PIXELS, _IMAGE_PIXELS, 8, 2, 0, 0, 0)
    rows = (b"\0" + color * _IMAGE_PIXELS) * _IMAGE_PIXELS
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


WHOLE_ANSWERS: Final[Mapping[Operation, Callable[[ModelCall], bytes]]] = {
    "embeddings": _embeddings,
    "moderations": _moderations,
    "rerank": _rerank,
    "image_generation": _images,
    "image_edit": _images,
    "image_variation": _images,
    "transcription": _transcript,
    "translation": _transcript,
}
