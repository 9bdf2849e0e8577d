"""A fake Amazon Bedrock on 127.0.0.1. It checks signatures with botocore's signer, validates requests with botocore's
model of the service, and returns the answer that the test sets."""

import base64
import json
import struct
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from zlib import crc32

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.validate import ParamValidator
from tests.support.upstream import Connection

REGION = "eu-central-1"
KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
USAGE = {
    "inputTokens": 12,
    "outputTokens": 5,
    "totalTokens": 28,
    "cacheReadInputTokens": 8,
    "cacheWriteInputTokens": 3,
}
CALL = {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {"city": "Köln"}}}

_SESSION = botocore.session.get_session()
RUNTIME = _SESSION.get_service_model("bedrock-runtime")
CONTROL = _SESSION.get_service_model("bedrock")
_OPERATIONS = {"converse": "Converse", "converse-stream": "ConverseStream"}


class Bedrock:
    """The fake Bedrock: a behaviour for `upstream`. `blocks` are the content blocks of its answers. Requests that fail
    validation are answered with 400, and their errors are added to `faults`."""

    def __init__(
        self,
        *blocks: dict[str, Any],
        stop: str = "end_turn",
        models: Sequence[dict[str, Any]] = (),
        profiles: Sequence[dict[str, Any]] | None = (),
        session_token: str | None = None,
    ) -> None:
        reasoning = {"reasoningContent": {"reasoningText": {"text": "Thinking.", "signature": "s"}}}
        self.blocks = blocks or (reasoning, {"text": "Hi ä"})
        self.stop = stop
        self.models = models
        self.profiles = profiles
        self.session_token = session_token
        self.faults: list[str] = []
        self.received_calls: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, connection: Connection) -> None:
        if not is_signed(connection, self.session_token):
            await refuse(connection, 403, "InvalidSignatureException", "The request signature does not match.")
            return
        method, path, _ = connection.head.split(" ", 2)
        path, _, query = path.partition("?")
        if method == "GET":
            await self._list(connection, path, dict(parse_qsl(query)))
            return
        _, _, model, operation = path.split("/")
        body = json.loads(connection.body)
        self.received_calls.append((unquote(model), body))
        if operation == "invoke":
            # Bedrock adds this to the answers of all vendors' models.
            more = "X-Amzn-Bedrock-Input-Token-Count: 4\r\n"
            await connection.answer(json.dumps(embedding_answer(body)).encode(), more=more)
            return
        fault = fault_in(body, unquote(model), _OPERATIONS[operation])
        if fault is not None:
            self.faults.append(fault)
            await refuse(connection, 400, "ValidationException", fault)
        elif operation == "converse":
            await connection.answer(self.whole())
        else:
            await begin_stream(connection)
            for event in self.frames():
                await connection.chunk(event)
            await connection.end_stream()

    def whole(self) -> bytes:
        answer = {
            "output": {"message": {"role": "assistant", "content": list(self.blocks)}},
            "stopReason": self.stop,
            "usage": USAGE,
            "metrics": {"latencyMs": 9},
        }
        return json.dumps(answer, indent=1).encode()

    def frames(self) -> list[bytes]:
        """Return the events of a stream. Texts and arguments that are long enough are sent in two pieces."""
        results = [event("messageStart", {"role": "assistant"})]
        for index, block in enumerate(self.blocks):
            results += _streamed(index, block)
            results.append(event("contentBlockStop", {"contentBlockIndex": index}))
        results.append(event("messageStop", {"stopReason": self.stop}))
        return [*results, event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 9}})]

    async def _list(self, connection: Connection, path: str, query: dict[str, str]) -> None:
        """Answer a list of models or profiles. Each page has one profile."""
        if path == "/foundation-models":
            await connection.answer(json.dumps({"modelSummaries": list(self.models)}).encode())
        elif self.profiles is None:
            await refuse(connection, 403, "AccessDeniedException", "not authorized")
        else:
            token = query.get("nextToken", "page/+0=")
            start = int(token.removeprefix("page/+").removesuffix("="))
            page: dict[str, Any] = {"inferenceProfileSummaries": list(self.profiles[start : start + 1])}
            if start + 1 < len(self.profiles):
                page["nextToken"] = f"page/+{start + 1}="
            await connection.answer(json.dumps(page).encode())


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    encoded = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    prelude += struct.pack("!I", crc32(prelude))
    message = prelude + encoded + payload
    return message + struct.pack("!I", crc32(message))


def event(name: str, payload: dict[str, Any]) -> bytes:
    # Bedrock pads its events, so that their length does not reveal the length of the text.
    body = json.dumps({**payload, "p": "abcdefgh"}).encode()
    return frame({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, body)


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


async def begin_stream(connection: Connection) -> None:
    kind = "application/vnd.amazon.eventstream"
    await connection.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())


async def refuse(connection: Connection, status: int, name: str, message: str) -> None:
    body = json.dumps({"message": message}).encode()
    await connection.answer(body, status=status, more=f"x-amzn-ErrorType: {name}:http://internal.amazon.com/\r\n")


def is_signed(connection: Connection, session_token: str | None = None) -> bool:
    """Return whether botocore computes the same signature for the request."""
    headers = connection.headers
    text = headers.get("authorization", "")
    if "SignedHeaders=" not in text or headers.get("x-amz-security-token") != session_token:
        return False
    names = text.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    method, target, _ = connection.head.split(" ", 2)
    path, _, query = target.partition("?")
    # The service signs the query with each value decoded and encoded again.
    pairs = [(quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query)]
    url = f"http://{headers['host']}{path}" + ("?" + "&".join(map("=".join, pairs)) if pairs else "")
    request = AWSRequest(method, url, data=connection.body, headers={name: headers[name] for name in names})
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(KEY_ID, SECRET, session_token), "bedrock", REGION)
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    scope = f"{headers['x-amz-date'][:8]}/{REGION}/bedrock/aws4_request"
    return text == (
        f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )


def embedding_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to an embedding request, in the format of Amazon's or Cohere's models. The formats are those of
    the vendors' documentation, because botocore's model of the service does not describe the bodies of InvokeModel."""
    if "inputText" in body:
        assert body.keys() <= {"inputText", "dimensions", "normalize", "embeddingTypes"}
        return {"embedding": [0.25, 0.5], "embeddingsByType": {"float": [0.25, 0.5]}, "inputTextTokenCount": 4}
    assert body.keys() <= {"texts", "input_type", "truncate", "embedding_types", "output_dimension"}
    vectors = [[float(len(text)), 0.5] for text in body["texts"]]
    if "output_dimension" in body:
        return {"id": "e", "embeddings": {"float": vectors}, "response_type": "embeddings_by_type"}
    return {"id": "e", "embeddings": vectors, "texts": body["texts"], "response_type": "embeddings_floats"}


def fault_in(body: dict[str, Any], model: str, operation: str) -> str | None:
    """Return the error for which Bedrock would refuse the request, or None."""
    shape = RUNTIME.operation_model(operation).input_shape
    report = ParamValidator().validate({"modelId": model, **_with_blobs(body, shape)}, shape)
    if report.has_errors():
        return str(report.generate_report())
    messages = body["messages"]
    if [message["role"] for message in messages] != [("user", "assistant")[at % 2] for at in range(len(messages))]:
        return "A conversation must alternate between user and assistant roles."
    open_calls: list[str] = []
    for message in messages:
        results = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        if results != open_calls:
            return "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn."
        open_calls = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        if (results or open_calls) and "toolConfig" not in body:
            return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        if any(not block.get("text", "x").strip() for block in message["content"]):
            return "The text field in the ContentBlock object is blank."
    return None


def _streamed(index: int, block: dict[str, Any]) -> list[bytes]:
    at = {"contentBlockIndex": index}
    if "toolUse" in block:
        call = block["toolUse"]
        start = {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}
        pieces = _halves(json.dumps(call["input"])) if call["input"] else []
        deltas = [{"toolUse": {"input": piece}} for piece in pieces]
        return [
            event("contentBlockStart", {"start": start, **at}),
            *(event("contentBlockDelta", {"delta": delta, **at}) for delta in deltas),
        ]
    if "text" in block:
        return [event("contentBlockDelta", {"delta": {"text": piece}, **at}) for piece in _halves(block["text"])]
    return [event("contentBlockDelta", {"delta": {"reasoningContent": {"text": "Thinking."}}, **at})]


def _halves(text: str) -> list[str]:
    return [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]


def _with_blobs(value: Any, shape: Any) -> Any:
    """Convert to botocore's form: bytes instead of base64."""
    if shape.type_name == "structure" and not getattr(shape, "is_document_type", False) and isinstance(value, dict):
        return {
            key: _with_blobs(inner, shape.members[key]) if key in shape.members else inner
            for key, inner in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [_with_blobs(inner, shape.member) for inner in value]
    return base64.b64decode(value, validate=True) if shape.type_name == "blob" else value
