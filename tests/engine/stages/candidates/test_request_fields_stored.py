"""Fields with ids of what a provider stores, through the whole engine."""

import json
from typing import Any
from uuid import uuid4

import pytest
from tests.support.engine import EngineHarness

from gatehouse.engine.fields.naming import all_names
from gatehouse.engine.fields.tables import NEVER_ALLOWED
from gatehouse.foundation.ids import new_id
from gatehouse.platform.batches.ids import FILE_PREFIX, shown_id

#: By the client's dialect: the kind of a provider with the same API, and a body.
DIALECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("openai_compatible", {"messages": [{"role": "user", "content": "hi"}]}),
    "openai_responses": ("openai", {"input": [{"role": "user", "content": "hi"}]}),
    "anthropic_messages": ("anthropic", {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
}
INTERPRETER = {"type": "code_interpreter"}
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
CALL = {"type": "code_interpreter_call", "id": "ci_9", "code": "1", "status": "completed", "outputs": []}
GATEWAY_FILE = shown_id(FILE_PREFIX, new_id())
SPOKEN = {"role": "assistant", "audio": {"id": "audio_1"}}


async def refusal(
    dialect: str,
    fields: dict[str, Any],
    *allowed: str,
    escaped: str | None = None,
    kind: str | None = None,
    status: int = 400,
) -> tuple[str, str] | None:
    """Return the code and the `param` of a refusal, or None if the provider received the call."""
    own_kind, body = DIALECTS[dialect]
    harness = EngineHarness()
    harness.serve("one", "a", kind=kind or own_kind)
    harness.allowed_fields = allowed
    harness.outbound.script = [(500, [b"{}"])]
    raw = json.dumps({"model": "one/a", **body, **fields}).encode()
    if escaped is not None:
        raw = raw.replace(escaped.encode(), f"\\u{ord(escaped[0]):04x}{escaped[1:]}".encode())
    answer = await harness.engine.answer(harness.request(raw, dialect=dialect))
    if harness.outbound.sent:
        return None
    assert answer.status == status
    error = json.loads(answer.body)["error"]
    return error["code"], error["param"]


@pytest.mark.parametrize(
    ("tools", "tool", "name", "param"),
    [
        ([{**INTERPRETER, "container": "cntr_1"}], "tools.code_interpreter", "container", "tools[0].container"),
        (
            [{**INTERPRETER, "container": {"type": "auto"}}, {**INTERPRETER, "container": {"file_ids": ["file-1"]}}],
            "tools.code_interpreter", "file_id", "tools[1].container.file_ids",
        ),
        ([SEARCH], "tools.file_search", "vector_store_ids", "tools[0].vector_store_ids"),
        (
            [{"type": "shell", "environment": {"type": "container_reference", "container_id": "cntr_1"}}],
            "tools.shell", "container", "tools[0].environment.container_id",
        ),
        (
            [{"type": "image_generation", "input_image_mask": {"file_id": "file-1"}}],
            "tools.image_generation", "file_id", "tools[0].input_image_mask.file_id",
        ),
    ],
)  # fmt: skip
async def test_an_id_within_a_tool_needs_the_permission_of_its_kind(
    tools: list[dict[str, Any]], tool: str, name: str, param: str
) -> None:
    assert await refusal("openai_responses", {"tools": tools}, tool) == ("field_not_allowed", param)
    assert await refusal("openai_responses", {"tools": tools}, tool, name) is None
    assert {tool, name} <= set(all_names("openai_responses", {"tools": tools}))


async def test_an_id_within_a_tool_that_is_left_out_needs_no_permission() -> None:
    tools = [{"type": "image_generation", "input_image_mask": {"file_id": "file-1"}}]
    assert await refusal("openai_responses", {"tools": tools}) is None


async def test_tools_without_ids_and_screens_of_computers_need_no_further_permission() -> None:
    tools = [{**INTERPRETER, "container": {"type": "auto"}}, {"type": "computer_use_preview", "environment": "browser"}]
    assert await refusal("openai_responses", {"tools": tools}, "tools.code_interpreter") is None


async def test_tools_that_an_item_adds_are_judged_alike() -> None:
    items = [{"role": "user", "content": "hi"}, {"type": "additional_tools", "tools": [SEARCH]}]
    refused = await refusal("openai_responses", {"input": items}, "tools.file_search")
    assert refused == ("field_not_allowed", "input[1].tools[0].vector_store_ids")


@pytest.mark.parametrize("escaped", [None, "container_id"])
async def test_the_container_of_an_earlier_call_needs_permission(escaped: str | None) -> None:
    items = {"input": [{"role": "user", "content": "hi"}, {**CALL, "container_id": "cntr_1"}]}
    refused = await refusal("openai_responses", items, escaped=escaped)
    assert refused == ("field_not_allowed", "input[1].container_id")
    assert await refusal("openai_responses", items, "container", escaped=escaped) is None


@pytest.mark.parametrize("container", ["container_1", {"id": "container_1", "skills": []}])
async def test_so_does_a_container_of_anthropic(container: Any) -> None:
    refused = await refusal("anthropic_messages", {"container": container})
    assert refused is not None
    assert await refusal("anthropic_messages", {"container": container}, "container") is None


@pytest.mark.parametrize("escaped", [None, "audio"])
async def test_the_recording_of_an_earlier_answer_needs_the_permission_of_a_file(escaped: str | None) -> None:
    messages = {"messages": [{"role": "user", "content": "hi"}, SPOKEN, {"role": "user", "content": "again"}]}
    refused = await refusal("openai_chat", messages, escaped=escaped)
    assert refused == ("field_not_allowed", "messages[1].audio.id")
    assert await refusal("openai_chat", messages, "file_id", escaped=escaped) is None


@pytest.mark.parametrize("kind", ["openai_compatible", "ollama", "anthropic"])
@pytest.mark.parametrize("name", ["previous_response_id", "previousResponseId", *sorted(NEVER_ALLOWED)])
async def test_stored_conversations_are_refused_outside_the_responses_api_even_with_permission(
    name: str, kind: str
) -> None:
    allowed = ("previous_response_id", *NEVER_ALLOWED)
    assert await refusal("openai_chat", {name: "id_of_another"}, *allowed, kind=kind) == ("field_not_allowed", name)
    assert await refusal("anthropic_messages", {name: "id_of_another"}, *allowed) is not None


@pytest.mark.parametrize("name", sorted(NEVER_ALLOWED))
async def test_the_responses_api_continues_stored_responses_only(name: str) -> None:
    assert await refusal("openai_responses", {name: "id_of_another"}, *NEVER_ALLOWED) is not None


async def test_null_passes() -> None:
    fields = dict.fromkeys(("previous_response_id", *NEVER_ALLOWED))
    assert await refusal("openai_chat", fields) is None


@pytest.mark.parametrize("allowed", [(), ("file_id",)])
@pytest.mark.parametrize(
    ("dialect", "part", "place"),
    [
        ("openai_chat", {"type": "file", "file": {"file_id": GATEWAY_FILE}}, "messages[0].content[0].file.file_id"),
        (
            "anthropic_messages", {"type": "document", "source": {"type": "file", "file_id": GATEWAY_FILE}},
            "messages[0].content[0].source.file_id",
        ),
        ("openai_responses", {"type": "input_file", "file_id": GATEWAY_FILE}, "input[0].content[0].file_id"),
    ],
)  # fmt: skip
async def test_a_file_of_the_gateway_is_not_found_even_with_permission(
    dialect: str, part: dict[str, Any], place: str, allowed: tuple[str, ...]
) -> None:
    field = "input" if dialect == "openai_responses" else "messages"
    body = {field: [{"role": "user", "content": [part]}]}
    assert await refusal(dialect, body, *allowed, status=404) == ("file_not_found", place)


async def test_a_file_of_the_gateway_in_a_container_is_not_found_either() -> None:
    tools = [{**INTERPRETER, "container": {"type": "auto", "file_ids": ["file-1", GATEWAY_FILE]}}]
    refused = await refusal("openai_responses", {"tools": tools}, "tools.code_interpreter", "file_id", status=404)
    assert refused == ("file_not_found", "tools[0].container.file_ids")


@pytest.mark.parametrize("file_id", ["file-abcdefghijklmnopqrstuvwx", f"file-{uuid4().hex}"])
async def test_the_providers_own_file_passes_with_the_permission(file_id: str) -> None:
    part = {"type": "input_file", "file_id": file_id}
    assert await refusal("openai_responses", {"input": [{"role": "user", "content": [part]}]}, "file_id") is None
