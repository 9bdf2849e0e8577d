"""Google's Gemini API on 127.0.0.1. It checks requests with the models of google-genai, and returns the answer of the
test."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

import pydantic
from google.genai import types
from tests.support.upstream import Connection

KEY = "AIza-very-secret-key"
SIGNATURE = base64.b64encode(b"thoughts of the model, sealed").decode()
USAGE = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 8,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 7,
    "totalTokenCount": 32,
}
CALL = {"functionCall": {"name": "weather", "args": {"city": "Köln"}}, "thoughtSignature": SIGNATURE}

_TOP: dict[str, Callable[[str], Any]] = {
    "contents": pydantic.TypeAdapter(list[types.Content]).validate_json,
    "systemInstruction": types.Content.model_validate_json,
    "tools": pydantic.TypeAdapter(list[types.Tool]).validate_json,
    "toolConfig": types.ToolConfig.model_validate_json,
    "generationConfig": types.GenerationConfig.model_validate_json,
}


class Gemini:
    """A behaviour of `upstream`. `parts` are those of the answer; in a stream each is an event. `faults` are the errors
    of requests, which are also answered with 400."""

    def __init__(
        self,
        *parts: dict[str, Any],
        finish: str | None = "STOP",
        usage: dict[str, int] | None = None,
        block: str | None = None,
        models: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.parts = parts or ({"text": "Thinking.", "thought": True}, {"text": "Hi "}, {"text": "ä"})
        self.finish = finish
        self.usage = USAGE if usage is None else usage
        self.block = block
        self.models = models
        self.faults: list[str] = []
        self.bodies: list[dict[str, Any]] = []

    async def __call__(self, connection: Connection) -> None:
        if connection.headers.get("x-goog-api-key") != KEY:
            details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
            await refuse(connection, 400, "INVALID_ARGUMENT", "API key not valid.", details)
            return
        method, path, _ = connection.head.split(" ", 2)
        path, _, query = path.partition("?")
        if method == "GET":
            await self._list(connection, query)
            return
        model, _, operation = path.partition("/models/")[2].rpartition(":")
        body = json.loads(connection.body)
        self.bodies.append(body)
        fault = self._embedding_fault(body, model) if operation == "batchEmbedContents" else fault_in(body, model)
        if fault is not None:
            self.faults.append(fault)
            await refuse(connection, 400, "INVALID_ARGUMENT", fault)
            return
        match operation, query:
            case "generateContent", "":
                await connection.answer(self.whole(model))
            case "streamGenerateContent", "alt=sse":
                await self._stream(connection, model)
            case "batchEmbedContents", "":
                vectors = [{"values": [float(len(json.dumps(one["content"]))), 0.5]} for one in body["requests"]]
                await connection.answer(
                    json.dumps({"embeddings": vectors, "usageMetadata": {"promptTokenCount": 4}}).encode()
                )
            case _:
                await refuse(connection, 404, "NOT_FOUND", f"No {path}")

    def whole(self, model: str) -> bytes:
        return json.dumps(self._answer(model, self.parts, last=True)).encode()

    def events(self, model: str) -> list[bytes]:
        if self.block is not None:
            return [sse(self._answer(model, (), last=True))]
        places = range(len(self.parts))
        return [sse(self._answer(model, self.parts[at : at + 1], last=at == places[-1])) for at in places]

    async def _stream(self, connection: Connection, model: str) -> None:
        await connection.begin_stream()
        for event in self.events(model):
            await connection.chunk(event)
        await connection.end_stream()

    def _answer(self, model: str, parts: Sequence[dict[str, Any]], *, last: bool) -> dict[str, Any]:
        answer: dict[str, Any] = {"modelVersion": f"{model}-001", "responseId": "r-1", "usageMetadata": self.usage}
        if self.block is not None:
            return {**answer, "promptFeedback": {"blockReason": self.block}}
        candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
        if last and self.finish is not None:
            candidate["finishReason"] = self.finish
        return {**answer, "candidates": [candidate]}

    async def _list(self, connection: Connection, query: str) -> None:
        """Each page has two models."""
        start = int(dict(parse_qsl(query)).get("pageToken", "0"))
        page: dict[str, Any] = {"models": list(self.models[start : start + 2])}
        if start + 2 < len(self.models):
            page["nextPageToken"] = str(start + 2)
        await connection.answer(json.dumps(page).encode())

    def _embedding_fault(self, body: dict[str, Any], model: str) -> str | None:
        for one in body["requests"]:
            if one.keys() - {"model", "content", "outputDimensionality"} or one["model"] != f"models/{model}":
                return f"Invalid request {one}"
            types.Content.model_validate_json(json.dumps(one["content"]))
        return None


def sse(data: dict[str, Any]) -> bytes:
    # Google ends lines with CR LF.
    return b"data: " + json.dumps(data).encode() + b"\r\n\r\n"


async def refuse(
    connection: Connection, status: int, name: str, message: str, details: Sequence[dict[str, Any]] = ()
) -> None:
    error = {"code": status, "message": message, "status": name, "details": list(details)}
    await connection.answer(json.dumps({"error": error}).encode(), status=status)


def fault_in(body: dict[str, Any], model: str) -> str | None:
    """Return the error for which Google would refuse the request, or None."""
    if unknown := body.keys() - _TOP.keys():
        return f"Unknown name {sorted(unknown)}"
    try:
        for name, value in body.items():
            _TOP[name](json.dumps(value))
    except pydantic.ValidationError as error:
        return str(error)
    contents = body.get("contents") or []
    if not contents or any(content["role"] not in {"user", "model"} for content in contents):
        return "contents with roles are required"
    for content, answer in zip(contents, [*contents[1:], None], strict=True):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if not calls or answer is None:
            continue
        answers = [part["functionResponse"] for part in answer["parts"] if "functionResponse" in part]
        if [(one["name"], one.get("id")) for one in answers] != [(one["name"], one.get("id")) for one in calls]:
            return "the number of function response parts must equal that of the function calls"
        first = next(part for part in content["parts"] if "functionCall" in part)
        valid_signatures = {SIGNATURE, "skip_thought_signature_validator"}
        if model.startswith("gemini-3") and first.get("thoughtSignature") not in valid_signatures:
            return "Function call is missing a thought_signature in functionCall parts."
    return None
