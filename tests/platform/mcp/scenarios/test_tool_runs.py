"""Tools of MCP servers that the gateway runs within model calls (docs/mcp.md)."""

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx2
import openai
import pytest
from aiohttp import web
from tests.support.journal import Journal
from tests.support.mcp_servers import (
    ScriptedServer,
    grant,
    recorded,
    register,
    result,
    scripted_server,
    text_result,
    tool,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

from gatehouse.engine.tool_runs import running

FIELDS = "/api/v1/admin/org/request-fields"
CARD = "4242 4242 4242 4242"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class Model:
    """A provider. It answers with its next reply: calls of functions (name and arguments), or a text."""

    def __init__(self) -> None:
        self.replies: list[list[tuple[str, Any]] | str] = []
        self.bodies: list[dict[str, Any]] = []
        #: fields of each completion that replace those of the reply
        self.completion: dict[str, Any] = {}
        #: the items of the next response
        self.items: list[dict[str, Any]] = []

    async def behave(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        self.bodies.append(body)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if body.get("tool_choice") == "none":
            reply = "no more tools"
        is_native = connection.head.split(" ")[1].endswith("/responses")
        answer = self._response(reply) if is_native else self._completion(reply)
        await connection.answer(json.dumps(answer).encode())

    def _completion(self, reply: list[tuple[str, Any]] | str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
        if not isinstance(reply, str):
            message["tool_calls"] = [
                {"id": self._id(index), "type": "function", "function": {"name": name, "arguments": encoded(arguments)}}
                for index, (name, arguments) in enumerate(reply)
            ]
        finish = "stop" if isinstance(reply, str) else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": USAGE,
            **self.completion,
        }

    def _response(self, reply: list[tuple[str, Any]] | str) -> dict[str, Any]:
        part = {"type": "output_text", "text": reply, "annotations": []}
        items: list[dict[str, Any]] = (
            [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}]
            if isinstance(reply, str)
            else [
                {"type": "function_call", "id": f"fc_{index}", "call_id": self._id(index), "name": name,
                 "arguments": encoded(arguments), "status": "completed"}
                for index, (name, arguments) in enumerate(reply)
            ]
        )  # fmt: skip
        if self.items:
            items, self.items = self.items, []
        usage = {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110,
        }  # fmt: skip
        return {
            "id": f"resp_{len(self.bodies)}", "object": "response", "created_at": 1, "status": "completed",
            "model": "m", "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "usage": usage,
        }  # fmt: skip

    def _id(self, index: int) -> str:
        return f"call_{len(self.bodies)}_{index}"


def encoded(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as scripted:
        scripted.tools.append(tool("send", "Sends a message."))
        yield scripted


@pytest.fixture
async def model(platform: RunningPlatform, tenant: Tenant, server: ScriptedServer) -> AsyncIterator[Model]:
    """A model behind `own/m` (chat completions) and `native/m` (the Responses API), and the server `mail`."""
    model = Model()
    async with upstream(model.behave) as provider:
        for name, native in (("own", False), ("native", True)):
            await platform.add_provider(
                tenant.id, name, "byoe", "m", base_url=f"{provider.url}/v1", format="openai", responses_api=native,
                max_retries=0,
            )  # fmt: skip
        await grant(tenant, await register(tenant, server.url, "mail"), tenant.user.id)
        await permit(tenant)
        yield model


async def permit(tenant: Tenant, *names: str) -> None:
    answer = await tenant.admin.client.put(FIELDS, json={"allowed": list(names or ["gateway.mcp"])})
    assert answer.status_code == 200, answer.text


def mail(**fields: Any) -> Any:
    return {"type": "mcp", "server_label": "mail", "require_approval": "never", **fields}


async def chat(tenant: Tenant, *, tools: Any = None, **fields: Any) -> httpx2.Response:
    body = {"model": "own/m", "messages": [{"role": "user", "content": "Write."}], "tools": tools or [mail()], **fields}
    return await tenant.user.client.post("/v1/chat/completions", json=body)


@pytest.fixture
async def client(platform: RunningPlatform, tenant: Tenant) -> AsyncIterator[openai.AsyncOpenAI]:
    key = await platform.new_key(tenant.user)
    async with platform.listening() as url, openai.AsyncOpenAI(api_key=key, base_url=f"{url}/v1") as client:
        yield client


async def test_a_chat_with_a_tool(
    platform: RunningPlatform, tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    model.replies = [[("mail__send", {"to": "Ann"}), ("mail__echo", {})], "Sent."]
    answer = await chat(tenant)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Sent.", "stop")
    assert answer.json()["usage"] == {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
    assert [(call["name"], call["arguments"]) for call in server.calls()] == [("send", {"to": "Ann"}), ("echo", {})]
    first, second = model.bodies
    assert [entry["function"]["name"] for entry in first["tools"]] == ["mail__echo", "mail__send"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool", "tool"]
    assert second["messages"][2] == {"role": "tool", "tool_call_id": "call_1_0", "content": "done"}


async def test_each_step_and_each_call_is_recorded(
    platform: RunningPlatform, tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    model.replies = [[("mail__send", {})], "Sent."]
    answer = await tenant.user.client.post(
        "/v1/chat/completions",
        json={"model": "own/m", "messages": [{"role": "user", "content": "a"}], "tools": [mail()]},
        headers={"X-Request-Id": "run-1"},
    )
    assert answer.status_code == 200
    (call,) = await recorded(platform, tenant)
    assert (call["details"]["tool"], call["outcome"]) == ("send", "success")
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
    events = await platform.audit(tenant, "gateway.request")
    assert sorted(event["request_id"] for event in events) == ["run-1", "run-1.2"]


@pytest.mark.parametrize("provider", ["own", "native"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_official_client_gets_the_items_of_a_response(
    client: openai.AsyncOpenAI, model: Model, server: ScriptedServer, provider: str, stream: bool
) -> None:
    model.replies = [[("mail__send", {"to": "Ann"})], "Sent."]
    if stream:
        async with client.responses.stream(model=f"{provider}/m", input="Write.", tools=[mail()]) as events:
            seen = [event async for event in events]
            answer: Any = await events.get_final_response()
        kinds = [event.type for event in seen]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert {"response.mcp_list_tools.completed", "response.mcp_call.completed"} <= set(kinds)
        assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == "Sent."
        assert [event.sequence_number for event in seen] == list(range(len(seen)))
    else:
        answer = await client.responses.create(model=f"{provider}/m", input="Write.", tools=[mail()])
    listed, call, message = answer.output
    assert (listed.type, listed.server_label, [entry.name for entry in listed.tools]) == (
        "mcp_list_tools", "mail", ["echo", "send"],
    )  # fmt: skip
    assert (call.type, call.name, json.loads(call.arguments), call.output, call.error, call.status) == (
        "mcp_call", "send", {"to": "Ann"}, "done", None, "completed",
    )  # fmt: skip
    assert message.content[0].text == "Sent." == answer.output_text
    assert answer.usage.input_tokens == 200
    # The next turn sends the items back, as the client's documentation shows.
    items: list[Any] = [{"role": "user", "content": "Write."}, *(item.to_dict() for item in answer.output)]
    model.replies = ["Again."]
    again = await client.responses.create(
        model=f"{provider}/m", input=[*items, {"role": "user", "content": "And?"}], tools=[mail()]
    )
    assert again.output_text == "Again."
    assert "done" in json.dumps(model.bodies[-1])
    assert len(server.calls()) == 1


async def test_a_streamed_chat(client: openai.AsyncOpenAI, model: Model, server: ScriptedServer) -> None:
    model.replies = [[("mail__send", {})], "Sent."]
    stream = await client.chat.completions.create(
        model="own/m", messages=[{"role": "user", "content": "Write."}], tools=[mail()], stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Sent."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 220
    assert [body["stream"] for body in model.bodies] == [False, False]


async def test_without_the_permission_nothing_is_sent(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    await permit(tenant, "tools.web_search")
    answer = await chat(tenant)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "tool_run_not_permitted")
    assert not model.bodies


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([mail(require_approval="always")], "tools[0].require_approval"),
        ([{"type": "mcp", "server_label": "mail"}], "tools[0].require_approval"),
        ([mail(allowed_tools=1)], "tools[0].allowed_tools"),
        ([mail(headers={"Authorization": "x"})], "tools[0].headers"),
        ([mail(), mail()], "tools[1].server_label"),
        ([{"type": "function", "function": {"name": "mail__send", "parameters": {}}}, mail()], "tools[1]"),
    ],
)
async def test_faults_name_the_field(tenant: Tenant, model: Model, tools: Any, param: str) -> None:
    answer = await chat(tenant, tools=tools)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not model.bodies


async def test_values_of_another_type_are_no_fault_of_the_gateway(tenant: Tenant, model: Model) -> None:
    answer = await chat(tenant, n=[])
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "n")
    called = {"type": "mcp_call", "server_label": [], "name": "send", "arguments": "{}"}
    listed = {"type": "mcp_list_tools", "server_label": {}, "tools": []}
    for items in ([{"type": [], "x": "mcp"}], [called], [called, {**called, "server_label": "mail"}, listed]):
        body = {"model": "own/m", "input": items}
        answer = await tenant.user.client.post("/v1/responses", json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), answer.text
    assert not model.bodies


async def test_a_server_elsewhere_is_refused_as_before(tenant: Tenant, model: Model) -> None:
    for fields in ({"server_url": "https://mcp.example.com"}, {"server_label": "other"}, {"connector_id": "c"}):
        answer = await chat(tenant, tools=[mail(**fields)])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "field_not_allowed")


async def test_the_caller_s_rights_limit_the_tools(
    platform: RunningPlatform, tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    model.replies = ["Sent."]
    other = await platform.new_person(tenant.id)
    body = {"model": "own/m", "messages": [{"role": "user", "content": "a"}], "tools": [mail()]}
    answer = await other.client.post("/v1/chat/completions", json=body)
    # The answer is that for a server that does not exist.
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "field_not_allowed")
    await chat(tenant, tools=[mail(allowed_tools=["echo"])])
    assert [entry["function"]["name"] for entry in model.bodies[-1]["tools"]] == ["mail__echo"]


async def test_without_an_offered_tool_the_model_gets_no_list(tenant: Tenant, model: Model) -> None:
    model.replies = ["Nothing to call."]
    answer = await chat(tenant, tools=[mail(allowed_tools=["other"])], tool_choice="required", parallel_tool_calls=True)
    assert answer.status_code == 200, answer.text
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & model.bodies[0].keys()


async def test_a_required_call_is_required_once(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    model.replies = [[("mail__send", {})], "Sent."]
    await chat(tenant, tool_choice="required")
    assert [body["tool_choice"] for body in model.bodies] == ["required", "auto"]


@pytest.mark.parametrize(("name", "status"), [("send", 200), ("other", 400)])
async def test_a_choice_of_a_server_s_tool(
    tenant: Tenant, model: Model, server: ScriptedServer, name: str, status: int
) -> None:
    model.replies = ["Sent."]
    choice = {"type": "mcp", "server_label": "mail", "name": name}
    body = {"model": "native/m", "input": "Write.", "tools": [mail()], "tool_choice": choice}
    answer = await tenant.user.client.post("/v1/responses", json=body)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert model.bodies[0]["tool_choice"] == {"type": "function", "name": "mail__send"}
    else:
        assert answer.json()["error"]["param"] == "tool_choice.name"


async def test_a_tool_that_the_provider_runs_does_not_end_the_run(
    tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "mail__send", "arguments": "{}"}
    model.items = [searched, call]
    model.replies = [[], "Sent."]
    body = {"model": "native/m", "input": "Write.", "tools": [mail()]}
    answer = await tenant.user.client.post("/v1/responses", json=body)
    kinds = [item["type"] for item in answer.json()["output"]]
    assert kinds == ["mcp_list_tools", "web_search_call", "mcp_call", "message"]
    assert [item.get("type", "message") for item in model.bodies[1]["input"]] == [
        "message", "function_call", "function_call_output",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [None, {"to": "Ann"}])
async def test_arguments_that_are_no_text(tenant: Tenant, model: Model, server: ScriptedServer, arguments: Any) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "mail__send", "arguments": arguments}
    model.items = [call]
    model.replies = [[], "Sent."]
    body = {"model": "native/m", "input": "Write.", "tools": [mail()]}
    answer = await tenant.user.client.post("/v1/responses", json=body)
    assert answer.json()["output"][-1]["content"][0]["text"] == "Sent.", answer.text
    assert server.calls()[0]["arguments"] == (arguments or {})


async def test_items_of_an_earlier_answer_are_readable_without_the_tool(
    tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    model.replies = [[("mail__send", {})], "Sent."]
    first = await tenant.user.client.post("/v1/responses", json={"model": "own/m", "input": "a", "tools": [mail()]})
    items = [{"role": "user", "content": "a"}, *first.json()["output"], {"role": "user", "content": "And?"}]
    model.replies = ["Again."]
    for fields in ({}, {"tools": [mail(allowed_tools=["echo"])]}):
        answer = await tenant.user.client.post("/v1/responses", json={"model": "own/m", "input": items, **fields})
        assert answer.status_code == 200, answer.text
        assert "Again." in answer.text
        assert model.bodies[-1]["messages"][1]["tool_calls"][0]["function"]["name"] == "mail__send"


async def test_the_results_of_a_run_are_bounded(
    tenant: Tenant, model: Model, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_RUN_CHARACTERS", len("done") * 2)
    model.replies = [[("mail__send", {})] * 3, "Sent."]
    await chat(tenant)
    texts = [message["content"] for message in model.bodies[1]["messages"] if message["role"] == "tool"]
    assert texts[:2] == ["done", "done"]
    assert "too long" in texts[2]


async def test_a_failure_is_a_text_for_the_model(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.StreamResponse | None:
        if message["method"] != "tools/call":
            return None
        if message["params"]["name"] == "echo":
            return web.Response(status=500)
        return result(message, {**text_result("no such mailbox"), "isError": True})

    server.respond = respond
    model.replies = [[("mail__send", {}), ("mail__echo", {}), ("mail__echo", "[]")], "It failed."]
    answer = await chat(tenant)
    assert answer.json()["choices"][0]["message"]["content"] == "It failed."
    texts = [message["content"] for message in model.bodies[1]["messages"] if message["role"] == "tool"]
    assert texts[0] == "no such mailbox"
    assert texts[1].startswith("The MCP server failed.")
    assert texts[2] == "The arguments are not a JSON object."


async def test_dlp_redacts_arguments_and_results(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.StreamResponse | None:
        return result(message, text_result(f"paid by {CARD}")) if message["method"] == "tools/call" else None

    server.respond = respond
    model.replies = [[("mail__send", {"card": CARD})], "Paid."]
    assert (await chat(tenant)).status_code == 200
    assert CARD not in json.dumps(server.calls())
    assert CARD not in json.dumps(model.bodies)


async def test_the_client_runs_its_own_functions(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    own = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    model.replies = [[("mail__send", {}), ("look", {"at": 1})]]
    answer = await chat(tenant, tools=[own, mail()])
    choice = answer.json()["choices"][0]
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["look"]
    assert choice["finish_reason"] == "tool_calls"
    assert not server.calls()


async def test_steps_are_bounded(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    model.replies = [[("mail__send", {})]]
    answer = await chat(tenant)
    assert answer.json()["choices"][0]["message"]["content"] == "no more tools"
    assert (len(model.bodies), len(server.calls())) == (running.MAX_STEPS, running.MAX_STEPS - 1)


async def test_calls_are_bounded(
    tenant: Tenant, model: Model, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_TOOL_CALLS", 3)
    model.replies = [[("mail__send", {})] * 2]
    answer = await chat(tenant)
    assert answer.json()["choices"][0]["message"]["content"] == "no more tools"
    assert (len(model.bodies), len(server.calls())) == (3, 3)
    assert model.bodies[-1]["messages"][-1]["content"] == "Not called: the limit of this request is reached."


@pytest.mark.parametrize("limit", ["cost", "time"])
async def test_cost_and_time_are_bounded(
    platform: RunningPlatform, tenant: Tenant, model: Model, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:  # fmt: skip
    if limit == "cost":
        monkeypatch.setattr(platform.host.ports, "tool_run_max_cost_usd", Decimal("0.0002"))
    else:
        monkeypatch.setattr(running, "MAX_RUN_SECONDS", -1.0)
    model.replies = [[("mail__send", {})]]
    answer = await chat(tenant)
    assert answer.json()["choices"][0]["message"]["content"] == "no more tools"
    assert len(server.calls()) == (1 if limit == "cost" else 0)
    if limit == "cost":
        assert Decimal(answer.headers["X-Cost-USD"]) == Decimal("0.00036")


async def test_a_refused_step_ends_the_run(tenant: Tenant, model: Model, server: ScriptedServer) -> None:
    rule = {"name": "no tools", "condition": 'mcp.tool == "send"', "action": "BLOCK"}
    assert (await tenant.admin.client.post("/api/admin/policies", json=rule)).status_code == 201
    model.replies = [[("mail__send", {})], "Not permitted."]
    answer = await chat(tenant)
    assert answer.json()["choices"][0]["message"]["content"] == "Not permitted."
    assert not server.calls()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_cannot_be_read_is_an_error(
    tenant: Tenant, model: Model, server: ScriptedServer, stream: bool
) -> None:
    model.completion = {"choices": [{"index": 0, "message": {"tool_calls": [{"id": 1, "function": "x"}]}}]}
    model.replies = ["never"]
    answer = await chat(tenant, stream=stream)
    assert answer.status_code == (200 if stream else 502)
    assert "tool_run_failed" in answer.text


async def test_a_client_that_leaves_ends_the_run(
    platform: RunningPlatform, tenant: Tenant, model: Model, server: ScriptedServer
) -> None:
    waits = asyncio.Event()

    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.StreamResponse | None:
        if message["method"] == "tools/call":
            waits.set()
            await asyncio.sleep(60)
        return None

    server.respond = respond
    model.replies = [[("mail__send", {})], "Sent."]
    key = await platform.new_key(tenant.user)
    body = {"model": "own/m", "messages": [{"role": "user", "content": "a"}], "tools": [mail()], "stream": True}
    async with platform.listening() as url, httpx2.AsyncClient(base_url=url) as http:
        headers = {"Authorization": f"Bearer {key}"}
        async with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert (await anext(answer.aiter_raw())).startswith(b":")
            await waits.wait()
        async with asyncio.timeout(30):
            while not (events := await recorded(platform, tenant)):
                await asyncio.sleep(0.05)
    assert events[0]["details"]["status"] == 499
    assert len(model.bodies) == 1
