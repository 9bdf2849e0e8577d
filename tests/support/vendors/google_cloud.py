"""Google Cloud on 127.0.0.1: the token endpoint, which checks assertions, and Vertex AI, which checks the tokens of it.
Requests to Gemini are checked as those to Google's Gemini API."""

import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

from joserfc import jwt
from joserfc.jwk import RSAKey
from tests.support.upstream import Connection
from tests.support.vendors import gemini

PROJECT = "our-project"
LOCATION = "europe-west4"
CLAUDE = "claude-sonnet-4-5@20250929"
EMAIL = "gateway@our-project.iam.gserviceaccount.com"
_RSA = RSAKey.generate_key(2048, private=True)
#: The JSON key of the service account, as Google's console writes it.
KEY = {
    "type": "service_account",
    "project_id": PROJECT,
    "private_key_id": "0a1b2c3d4e",
    "private_key": _RSA.as_pem(private=True).decode(),
    "client_email": EMAIL,
    "client_id": "1234567890",
    "auth_uri": "https://accounts.google.com/o/oauth2/auth",
    "token_uri": "https://oauth2.googleapis.com/token",
    "universe_domain": "googleapis.com",
}
SECRET = {"service_account_key": json.dumps(KEY)}
CONFIG = {"cloud_project": PROJECT, "cloud_location": LOCATION}
_PLACE = f"projects/{PROJECT}/locations/{LOCATION}/"
_CLAUDE_USAGE = {"input_tokens": 9, "output_tokens": 4}
CLAUDE_TEXT: Sequence[dict[str, Any]] = ({"type": "text", "text": "Hi ä"},)
CLAUDE_CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Köln"}}


class GoogleCloud:
    """A behaviour of `upstream`. `token_status` is the status of the token endpoint, `lifetime` that of its tokens in
    seconds. `claude` are the blocks of Claude's answers. `calls` are the path and the body of each call of a model.
    With `repeats_token`, calls are refused with a message that contains the token."""

    def __init__(self, *claude: dict[str, Any], model: gemini.Gemini | None = None) -> None:
        self.claude = claude or CLAUDE_TEXT
        self.gemini = model or gemini.Gemini()
        self.lifetime: float = 3599
        self.token_status = 200
        self.repeats_token = False
        self.token_body: bytes | None = None
        self.tokens: list[str] = []
        self.revoked: set[str] = set()
        self.faults: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.models: dict[str, list[str]] = {"google": [], "anthropic": []}

    async def __call__(self, connection: Connection) -> None:
        method, target, _ = connection.head.split(" ", 2)
        path, _, query = unquote(target).partition("?")
        if path == "/token":
            await self._issue(connection)
            return
        token = connection.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens or token in self.revoked:
            await gemini.refuse(connection, 401, "UNAUTHENTICATED", f"Invalid token {token}")
            return
        if method == "GET":
            await self._list(connection, path)
            return
        body = json.loads(connection.body)
        self.calls.append((target, body))
        if self.repeats_token:
            await gemini.refuse(connection, 400, "INVALID_ARGUMENT", f"No {token}")
            return
        version, _, rest = path.lstrip("/").partition("/")
        if not rest.startswith(_PLACE):
            await gemini.refuse(connection, 404, "NOT_FOUND", f"No {path}")
            return
        model, _, operation = rest.removeprefix(_PLACE).rpartition(":")
        if model.startswith("publishers/anthropic/models/"):
            await self._claude(connection, model.rpartition("/")[2], operation, body)
        else:
            await self._google(connection, model, f"{version} {operation}?{query}", body)

    async def _issue(self, connection: Connection) -> None:
        if self.token_status != 200 or self.token_body is not None:
            refusal = b'{"error": "invalid_grant", "error_description": "words of the token endpoint"}'
            await connection.answer(self.token_body or refusal, status=self.token_status)
            return
        form = {name: values[0] for name, values in parse_qs(connection.body.decode()).items()}
        assertion = jwt.decode(form["assertion"], RSAKey.import_key(KEY["private_key"]), algorithms=["RS256"])
        claims, url = assertion.claims, f"http://{connection.headers['host']}/token"
        expected = {"iss": EMAIL, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": url}
        if (
            form["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer"
            or assertion.header != {"typ": "JWT", "alg": "RS256", "kid": KEY["private_key_id"]}
            or {name: claims.get(name) for name in expected} != expected
            or not claims["iat"] - 5 <= time.time() < claims["exp"] <= claims["iat"] + 3600
        ):
            self.faults.append(f"{assertion.header} {claims}")
            await connection.answer(b'{"error": "invalid_grant"}', status=400)
            return
        await self.answer_token(connection)

    async def answer_token(self, connection: Connection) -> None:
        self.tokens.append(f"ya29.token-{len(self.tokens) + 1}")
        body = {"access_token": self.tokens[-1], "expires_in": self.lifetime, "token_type": "Bearer"}
        await connection.answer(json.dumps(body).encode())

    async def _claude(self, connection: Connection, model: str, operation: str, body: dict[str, Any]) -> None:
        counts = model == "count-tokens"
        if body.get("anthropic_version") != "vertex-2023-10-16" or ("model" in body) != counts:
            self.faults.append(str(sorted(body)))
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "anthropic_version"}}
            await connection.answer(json.dumps(error).encode(), status=400)
        elif counts:
            await connection.answer(b'{"input_tokens": 21}')
        elif operation == "streamRawPredict":
            await connection.begin_stream()
            for event in self.claude_events(model):
                await connection.chunk(event)
            await connection.end_stream()
        else:
            await connection.answer(self.claude_reply(model))

    def claude_reply(self, model: str) -> bytes:
        stop = "tool_use" if self.claude[-1]["type"] == "tool_use" else "end_turn"
        message = {"id": "msg_vrtx_1", "type": "message", "role": "assistant", "model": model}
        return json.dumps({**message, "content": self.claude, "stop_reason": stop, "usage": _CLAUDE_USAGE}).encode()

    def claude_events(self, model: str) -> list[bytes]:
        message = {"id": "msg_vrtx_1", "type": "message", "role": "assistant", "model": model, "content": []}
        usage = {"input_tokens": 9, "output_tokens": 1}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, "usage": usage}}]
        for index, block in enumerate(self.claude):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                {"type": "content_block_start", "index": index, "content_block": start},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        stop = "tool_use" if self.claude[-1]["type"] == "tool_use" else "end_turn"
        events += [
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 4}},
            {"type": "message_stop"},
        ]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]

    async def _google(self, connection: Connection, model: str, operation: str, body: dict[str, Any]) -> None:
        name = model.rpartition("/")[2]
        match operation:
            case "v1 generateContent?" | "v1 streamGenerateContent?alt=sse":
                fault = gemini.fault_in(body, name)
                if fault is not None:
                    self.faults.append(fault)
                    await gemini.refuse(connection, 400, "INVALID_ARGUMENT", fault)
                elif operation == "v1 generateContent?":
                    await connection.answer(self.gemini.whole(name))
                else:
                    await connection.begin_stream()
                    for event in self.gemini.events(name):
                        await connection.chunk(event)
                    await connection.end_stream()
            case "v1 countTokens?":
                await connection.answer(b'{"totalTokens": 22, "promptTokensDetails": []}')
            case "v1beta1 batchEmbedContents?":
                vectors = [
                    {"values": [float(len(one["content"]["parts"][0]["text"])), 0.5]} for one in body["requests"]
                ]
                answer = {"embeddings": vectors, "usageMetadata": {"promptTokenCount": 4}}
                await connection.answer(json.dumps(answer).encode())
            case "v1 predict?" | "v1beta1 predict?":
                predictions = [
                    {"embeddings": {"values": [float(len(one["content"])), 0.5], "statistics": {"token_count": 2.0}}}
                    for one in body["instances"]
                ]
                await connection.answer(json.dumps({"predictions": predictions}).encode())
            case _:
                await gemini.refuse(connection, 404, "NOT_FOUND", f"No {operation}")

    async def _list(self, connection: Connection, path: str) -> None:
        publisher = path.removeprefix("/v1beta1/publishers/").removesuffix("/models")
        names = [{"name": f"publishers/{publisher}/models/{name}"} for name in self.models[publisher]]
        await connection.answer(json.dumps({"publisherModels": names} if names else {}).encode())
