"""A server with OpenAI's Responses API, which keeps responses: deterministic answers, streamed or not."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support import native_responses as native
from tests.support.upstream import Connection

#: the value in its answers that DLP redacts
CARD = "4111 1111 1111 1111"
NOT_FOUND = b'{"error":{"message":"Not found","type":"invalid_request_error","code":null}}'


class ResponsesApi:
    """Answers a text with a text that contains a card number. Calls the tool of a request that has one. Answers the
    result of a tool with that result."""

    def __init__(self) -> None:
        #: bodies of the calls
        self.calls: list[dict[str, Any]] = []
        #: kept responses and the items of their inputs, by id
        self.kept: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}

    async def __call__(self, connection: Connection) -> None:
        method, target, _ = connection.head.split(" ", 2)
        parts = urlsplit(target)
        below = parts.path.removeprefix("/v1/responses").strip("/")
        if method == "POST" and below == "compact":
            await self._compact(connection)
        elif method == "POST" and not below:
            await self._answer(connection)
        else:
            await self._operate(connection, method, below, parse_qs(parts.query))

    async def _answer(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        self.calls.append(body)
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            await connection.answer(NOT_FOUND, status=404)
            return
        number = len(self.calls)
        items = [_renumbered(item, number) for item in _output(body)]
        more = {"id": f"resp_up{number}", "previous_response_id": previous, "store": body.get("store", True)}
        whole = native.response(*items, **more)
        if more["store"]:
            self.kept[whole["id"]] = (whole, _input_items(body, number))
        if not body.get("stream"):
            await connection.answer(json.dumps(whole).encode())
            return
        await connection.begin_stream()
        for event in native.stream(*items, **more):
            await connection.chunk(event)
        await connection.end_stream()

    async def _compact(self, connection: Connection) -> None:
        self.calls.append(json.loads(connection.body))
        item = {"id": "cmp_1", "type": "compaction", "encrypted_content": native.ENCRYPTED}
        answer = {
            "id": "resp_c",
            "object": "response.compaction",
            "created_at": 1,
            "output": [item],
            "usage": native.USAGE,
        }
        await connection.answer(json.dumps(answer).encode())

    async def _operate(self, connection: Connection, method: str, below: str, query: dict[str, list[str]]) -> None:
        response_id, _, rest = below.partition("/")
        if response_id not in self.kept:
            await connection.answer(NOT_FOUND, status=404)
            return
        whole, items = self.kept[response_id]
        answer: dict[str, Any] = whole
        if rest == "input_items":
            start = next((index + 1 for index, item in enumerate(items) if [item["id"]] == query.get("after")), 0)
            page = items[start : start + int(query.get("limit", ["20"])[0])]
            ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
            answer = {"object": "list", "data": page, "has_more": start + len(page) < len(items), **ends}
        elif method == "DELETE":
            del self.kept[response_id]
            answer = {"id": response_id, "object": "response", "deleted": True}
        await connection.answer(json.dumps(answer).encode())


def _output(body: dict[str, Any]) -> list[dict[str, Any]]:
    items = body["input"] if isinstance(body["input"], list) else []
    results = [item["output"] for item in items if str(item.get("type")).endswith("call_output")]
    if results:
        return [native.reasoning(f"Read {CARD}."), native.message(f"The tool says: {results[-1]}")]
    functions = [tool for tool in body.get("tools") or () if tool["type"] == "function"]
    if functions:
        return [
            native.reasoning("Call it."),
            native.function_call(json.dumps({"card": CARD}), name=functions[0]["name"]),
        ]
    if (body.get("text") or {}).get("format", {}).get("type") == "json_schema":
        return [native.message(json.dumps({"card": CARD, "amount": 5}))]
    return [native.reasoning(f"Think of {CARD}."), native.message(f"Your card is {CARD}.")]


def _renumbered(item: dict[str, Any], number: int) -> dict[str, Any]:
    return {**item, "id": f"{item['id']}{number}"}


def _input_items(body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    input_value = body["input"]
    items = input_value if isinstance(input_value, list) else [{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": input_value}]}]  # fmt: skip
    return [{**item, "id": item.get("id", f"msg_in{number}{index}")} for index, item in enumerate(items)]
