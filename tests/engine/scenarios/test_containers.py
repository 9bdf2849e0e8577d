"""Containers that answers of the Responses API name: their ids are bound to the organization and user."""

import json
from typing import Any

import pytest
from tests.engine.scenarios.test_kept_responses import become_another_tenant, become_another_user, error_of
from tests.engine.scenarios.test_native_responses import ask, ask_streamed, ask_whole, engine, sent
from tests.support import native_responses as native

TOOL = "tools.code_interpreter"
CALL = {"id": "ci_1e", "type": "code_interpreter_call", "status": "completed", "code": "1", "container_id": "cntr_up1"}
CITATION = {"type": "container_file_citation", "container_id": "cntr_up1", "file_id": "cfile_1", "filename": "a.csv"}
ITEMS = (CALL, native.message("Hi", annotations=[CITATION]))


def tools(container: Any) -> list[dict[str, Any]]:
    return [{"type": "code_interpreter", "container": container}]


async def first_answer(harness: Any, *, stream: bool = False) -> dict[str, Any]:
    if not stream:
        return await ask_whole(harness, *ITEMS)
    received = await ask_streamed(harness, native.stream(*ITEMS))
    assert "cntr_up1" not in json.dumps(received)
    response: dict[str, Any] = received[-1]["response"]
    return response


@pytest.mark.parametrize("stream", [False, True])
async def test_the_owner_uses_a_container_again_without_the_permission(stream: bool) -> None:
    harness = engine(TOOL)
    call, message = (await first_answer(harness, stream=stream))["output"]
    public_id = call["container_id"]
    assert public_id == message["content"][0]["annotations"][0]["container_id"]
    assert "cntr_up1" not in public_id
    items = [{"role": "user", "content": "hi"}, call, message]
    await ask_whole(harness, native.message("Ho"), input=items, tools=tools(public_id))
    body = sent(harness)
    assert body["input"][1]["container_id"] == body["tools"][0]["container"] == "cntr_up1"
    assert body["input"][2]["content"][0]["annotations"][0]["container_id"] == "cntr_up1"


@pytest.mark.parametrize("change", [become_another_user, become_another_tenant])
@pytest.mark.parametrize("allowed", [(TOOL,), (TOOL, "container")])
async def test_the_container_of_another_caller_is_not_found(change: Any, allowed: tuple[str, ...]) -> None:
    harness = engine(*allowed)
    public_id = (await first_answer(harness))["output"][0]["container_id"]
    change(harness)
    answer = await ask(harness, tools=tools(public_id))
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "tools[0].container"))
    items = [{"role": "user", "content": "hi"}, {**CALL, "container_id": public_id}]
    answer = await ask(harness, input=items)
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "input[1].container_id"))
    assert len(harness.outbound.sent) == 1


async def test_a_changed_id_is_not_found() -> None:
    harness = engine(TOOL)
    public_id = (await first_answer(harness))["output"][0]["container_id"]
    changed = public_id[:-2] + ("A" if public_id[-2] != "A" else "B") + public_id[-1]
    assert (await ask(harness, tools=tools(changed))).status == 404


async def test_the_providers_id_needs_the_permission() -> None:
    harness = engine(TOOL)
    answer = await ask(harness, tools=tools("cntr_up1"))
    assert (answer.status, error_of(answer.body)) == (400, ("field_not_allowed", "tools[0].container"))
    harness = engine(TOOL, "container")
    await ask_whole(harness, native.message("Ho"), tools=tools("cntr_up1"))
    assert sent(harness)["tools"][0]["container"] == "cntr_up1"


async def test_another_provider_does_not_receive_the_id() -> None:
    harness = engine(TOOL)
    harness.serve("two", "m", responses_api=True)
    public_id = (await first_answer(harness))["output"][0]["container_id"]
    answer = await ask(harness, model="two/m", tools=tools(public_id))
    assert (answer.status, error_of(answer.body)) == (400, ("field_not_allowed", "tools[0].container"))
