"""The header `X-Gateway-Dropped` names exactly the fields that a provider's body does not express."""

from typing import Any

import msgspec
import pytest

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.dialects.anthropic_messages.content import UNSIGNED
from gatehouse.engine.conversation.dialects.openai_chat.request import DIALECT_FIELDS as CHAT_FIELDS
from gatehouse.engine.conversation.form import Request
from gatehouse.engine.fields.tables import ORDINARY
from gatehouse.engine.providers.registry import SPOKEN

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
JSON_SCHEMA = {"name": "x", "schema": SCHEMA}


def called(call: dict[str, Any], function: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages with a call of a tool that has these additional fields."""
    made = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", **function}, **call}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
    ]


BASES: dict[str, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50_000, "tools": [FUNCTION]},
    "openai_responses": {
        "input": [{"role": "user", "content": "hi"}],
        "max_output_tokens": 50_000,
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    },
    "anthropic_messages": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "system": [{"type": "text", "text": "Be kind."}],
        "max_tokens": 50_000,
        "tools": [{"name": "f", "input_schema": SCHEMA}],
    },
}
#: for each dialect, the name of a field in the header, and a change of the body that sets this field
FIELDS: dict[str, dict[str, dict[str, Any]]] = {
    "openai_chat": {
        "audio": {"audio": {"voice": "alloy", "format": "mp3"}},
        "frequency_penalty": {"frequency_penalty": 0.5},
        "logit_bias": {"logit_bias": {"5": 1}},
        "logprobs": {"logprobs": True},
        "metadata": {"metadata": {"a": "b"}},
        "modalities": {"modalities": ["text", "audio"]},
        "moderation": {"moderation": {"model": "x"}},
        "parallel_tool_calls": {"parallel_tool_calls": False},
        "prediction": {"prediction": {"type": "content", "content": "x"}},
        "presence_penalty": {"presence_penalty": 0.5},
        "prompt_cache_key": {"prompt_cache_key": "k"},
        "prompt_cache_retention": {"prompt_cache_retention": "24h"},
        "reasoning_effort": {"reasoning_effort": "medium"},
        "response_format": {"response_format": {"type": "json_schema", "json_schema": JSON_SCHEMA}},
        "response_format.strict": {
            "response_format": {"type": "json_schema", "json_schema": {**JSON_SCHEMA, "strict": True}}
        },
        "response_format.description": {
            "response_format": {"type": "json_schema", "json_schema": {**JSON_SCHEMA, "description": "d"}}
        },
        "response_format.hint": {
            "response_format": {"type": "json_schema", "json_schema": {**JSON_SCHEMA, "hint": "h"}}
        },
        "safety_identifier": {"safety_identifier": "x"},
        "seed": {"seed": 5},
        "service_tier": {"service_tier": "priority"},
        "stop": {"stop": ["x"]},
        "store": {"store": True},
        "temperature": {"temperature": 0.5},
        "tool_choice": {"tool_choice": "required"},
        "tools.strict": {"tools": [{"type": "function", "function": {**FUNCTION["function"], "strict": True}}]},  # type: ignore[dict-item]
        "tools.cache_control": {"tools": [{**FUNCTION, "cache_control": {"type": "ephemeral"}}]},
        "top_k": {"top_k": 5},
        "top_logprobs": {"logprobs": False, "top_logprobs": 3},
        "top_p": {"top_p": 0.5},
        "user": {"user": "u"},
        "verbosity": {"verbosity": "low"},
        "web_search_options": {"web_search_options": {"search_context_size": "low"}},
        "chat_template_kwargs": {"chat_template_kwargs": {"a": 1}},
        "safe_prompt": {"safe_prompt": True},
        "messages.name": {"messages": [{"role": "user", "content": "hi", "name": "n"}]},
        "messages.detail": {
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
            ]}]
        },
        "messages.cache_control": {
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            ]}]
        },
        "messages.image_url.hint": {
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "hint": "h"}},
            ]}]
        },
        "messages.tool_calls.hint": {"messages": called({"hint": "h"}, {})},
        "messages.tool_calls.function.hint": {"messages": called({}, {"hint": "h"})},
        "messages.system": {"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "Wait."}]},
    },
    "openai_responses": {
        "client_metadata": {"client_metadata": {"a": "b"}},
        "context_management": {"context_management": [{"type": "compaction"}]},
        "include": {"include": ["reasoning.encrypted_content"]},
        "max_tool_calls": {"max_tool_calls": 5},
        "metadata": {"metadata": {"a": "b"}},
        "parallel_tool_calls": {"parallel_tool_calls": False},
        "prompt_cache_key": {"prompt_cache_key": "k"},
        "reasoning.effort": {"reasoning": {"effort": "medium"}},
        "safety_identifier": {"safety_identifier": "x"},
        "service_tier": {"service_tier": "flex"},
        "temperature": {"temperature": 0.5},
        "text.format": {"text": {"format": {"type": "json_schema", **JSON_SCHEMA}}},
        "text.format.strict": {"text": {"format": {"type": "json_schema", **JSON_SCHEMA, "strict": True}}},
        "text.format.description": {"text": {"format": {"type": "json_schema", **JSON_SCHEMA, "description": "d"}}},
        "text.format.hint": {"text": {"format": {"type": "json_schema", **JSON_SCHEMA, "hint": "h"}}},
        "text.verbosity": {"text": {"verbosity": "low"}},
        "tool_choice": {"tool_choice": "required"},
        "tools.web_search": {
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}, {"type": "web_search"}]
        },
        "tools.strict": {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}]},
        "tools.output_schema": {
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "output_schema": {"type": "object"}}]
        },
        "top_p": {"top_p": 0.5},
        "user": {"user": "u"},
        "input.reasoning": {
            "input": [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "rs_1", "summary": []}]
        },
        "input.filename": {
            "input": [{"role": "user", "content": [
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
            ]}]
        },
        "input.prompt_cache_breakpoint": {
            "input": [{"role": "user", "content": [
                {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
            ]}]
        },
        "input.annotations": {
            "input": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
                {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}], "logprobs": []}
            ]}, {"role": "user", "content": "hi"}]
        },
        "input.caller": {
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "caller": {"type": "direct"}},
                {"type": "function_call_output", "call_id": "c", "output": "42"},
            ]
        },
        "input.system": {"input": [{"role": "user", "content": "hi"}, {"role": "developer", "content": "Wait."}]},
        "input.phase": {"input": [{"role": "user", "content": "hi", "phase": "commentary"}]},
    },
    "anthropic_messages": {
        "context_management": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "mcp_servers": {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]},
        "metadata.user_id": {"metadata": {"user_id": "u"}},
        "metadata.other": {"metadata": {"other": "u"}},
        "output_config.effort": {"output_config": {"effort": "medium"}},
        "output_config.format": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        "output_config.task_budget": {"output_config": {"task_budget": {"total": 5}}},
        "output_config.format.hint": {
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA, "hint": "h"}}
        },
        "service_tier": {"service_tier": "priority"},
        "stop_sequences": {"stop_sequences": ["x"]},
        "temperature": {"temperature": 0.5},
        "thinking": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        "thinking.hint": {"thinking": {"type": "enabled", "budget_tokens": 2048, "hint": "h"}},
        "tool_choice": {"tool_choice": {"type": "any"}},
        "tool_choice.hint": {"tool_choice": {"type": "any", "hint": "h"}},
        "tool_choice.disable_parallel_tool_use": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        "tools.strict": {"tools": [{"name": "f", "input_schema": SCHEMA, "strict": True}]},
        "tools.cache_control": {
            "tools": [{"name": "f", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}]
        },
        "top_k": {"top_k": 5},
        "top_p": {"top_p": 0.5},
        "system.cache_control": {
            "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
        },
        "messages.cache_control": {
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            ]}]
        },
        "messages.hint": {"messages": [{**BASES["anthropic_messages"]["messages"][0], "hint": "h"}]},
        "messages.source.hint": {
            "messages": [{"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk=", "hint": "h"}}
            ]}]
        },
        "messages.thinking": {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]},
            ]
        },
    },
}  # fmt: skip
#: for a field that is part of another field, a change of the body that sets only the other field
WITHOUT: dict[str, dict[str, Any]] = {
    "input.filename": {
        "input": [{"role": "user", "content": [
            {"type": "input_file", "file_data": "data:application/pdf;base64,aGk="}
        ]}]
    },
    "response_format.strict": FIELDS["openai_chat"]["response_format"],
    "response_format.description": FIELDS["openai_chat"]["response_format"],
    "response_format.hint": FIELDS["openai_chat"]["response_format"],
    "text.format.strict": FIELDS["openai_responses"]["text.format"],
    "text.format.description": FIELDS["openai_responses"]["text.format"],
    "text.format.hint": FIELDS["openai_responses"]["text.format"],
    "output_config.format.hint": FIELDS["anthropic_messages"]["output_config.format"],
    "thinking.hint": FIELDS["anthropic_messages"]["thinking"],
    "tool_choice.hint": FIELDS["anthropic_messages"]["tool_choice"],
    "messages.tool_calls.hint": {"messages": called({}, {})},
    "messages.tool_calls.function.hint": {"messages": called({}, {})},
    "messages.image_url.hint": {
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]}]
    },
    "messages.source.hint": {
        "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        ]}]
    },
    "input.annotations": {
        "input": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
            {"type": "output_text", "text": "a", "annotations": []}
        ]}, {"role": "user", "content": "hi"}]
    },
    "input.caller": {
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "42"},
        ]
    },
    "tool_choice.disable_parallel_tool_use": {"tool_choice": {"type": "auto"}},
    "messages.detail": {
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ]}]
    },
}  # fmt: skip
#: additional fields of Mistral and of other servers that use the dialect of chat completions
EXTENSIONS = (ORDINARY["openai_chat"] - CHAT_FIELDS) | SPOKEN["mistral_chat"].extra_fields
#: a reasoning model for each provider's dialect
MODELS = {
    "openai_chat": "gpt-5",
    "anthropic_messages": "claude-sonnet-4-5",
    "gemini_generate": "gemini-2.5-flash",
    "mistral_chat": "magistral-medium",
    "bedrock_converse": "amazon.titan-text",
}
CASES = [
    (client, spoken, name)
    for client, fields in FIELDS.items()
    for spoken in MODELS
    if spoken != client
    for name in fields
]


def convert(client: str, spoken: str, changes: dict[str, Any], **more: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the provider's body, and the names of the lost fields."""
    dialect, provider = DIALECTS[client], SPOKEN[spoken]
    call = dialect.decode(msgspec.json.encode({"model": "p/m", **BASES[client], **changes}, order="deterministic"))
    request: Request = msgspec.structs.replace(dialect.to_internal(call), model=MODELS[spoken], **more)
    names = lost.lost_fields(request, provider.unwritten(request), provider.extra_fields, dialect.feature_fields)
    return provider.from_internal(request), set(names)


#: fields whose effect is expressed in another, weaker way
WEAKER = {"messages.system", "input.system"}


@pytest.mark.parametrize(("client", "spoken", "name"), CASES)
def test_a_field_is_named_if_and_only_if_the_body_does_not_express_it(client: str, spoken: str, name: str):
    before, _ = convert(client, spoken, WITHOUT.get(name, {}))
    after, names = convert(client, spoken, FIELDS[client][name])
    if name in WEAKER:
        assert (name in names) is (spoken != "openai_chat")
        return
    assert (name in names) is (before == after), (name, names, after)


@pytest.mark.parametrize(
    ("spoken", "highest"),
    [("openai_chat", 2), ("anthropic_messages", 1), ("gemini_generate", 2), ("mistral_chat", 1.5),
     ("bedrock_converse", 1)],
)  # fmt: skip
def test_a_temperature_is_named_if_it_is_cut(spoken: str, highest: float):
    client = "openai_responses" if spoken == "openai_chat" else "openai_chat"
    # The model `claude-sonnet-4-5` accepts temperatures.
    assert convert(client, spoken, {"temperature": highest})[1] == set()
    assert convert(client, spoken, {"temperature": 1.9})[1] == ({"temperature"} if highest < 1.9 else set())


@pytest.mark.parametrize("spoken", MODELS)
def test_a_json_mode_is_named_if_an_instruction_replaces_it(spoken: str):
    client = "openai_responses" if spoken == "openai_chat" else "openai_chat"
    changes = {"response_format": {"type": "json_object"}, "text": {"format": {"type": "json_object"}}}
    name = "text" if client == "openai_responses" else "response_format"
    _, names = convert(client, spoken, {name: changes[name]})
    assert names == ({"response_format"} if spoken in {"anthropic_messages", "bedrock_converse"} else set())


def test_a_choice_of_no_tool_is_named_where_the_tools_have_to_be_declared():
    messages = called({}, {})
    body, names = convert("openai_chat", "bedrock_converse", {"messages": messages, "tool_choice": "none"})
    assert (names, len(body["toolConfig"]["tools"])) == ({"tool_choice"}, 1)
    assert convert("openai_chat", "bedrock_converse", {"tool_choice": "none"})[1] == set()


@pytest.mark.parametrize("spoken", MODELS)
@pytest.mark.parametrize("client", BASES)
def test_nothing_is_named_for_a_call_that_is_expressed_in_full(client: str, spoken: str):
    _, names = convert(client, spoken, {})
    assert names == set()


@pytest.mark.parametrize("client", BASES)
def test_the_cases_cover_all_fields_of_a_dialect_that_can_be_lost(client: str):
    """Every ordinary field of the dialect is a case here, is converted for every provider, is refused, or is rare."""
    everywhere = {"model", "messages", "input", "instructions", "max_tokens", "max_completion_tokens", "stream",
                  "max_output_tokens", "stream_options", "tools", "reasoning", "text", "system",
                  "output_config"}  # fmt: skip
    refused = {"n", "functions", "function_call", "background", "conversation", "previous_response_id", "prompt",
               "store", "top_logprobs", "truncation"}  # fmt: skip
    cases = {name.partition(".")[0] for name in FIELDS[client]}
    rare = {"access_programs", "anthropic_beta", "anthropic_version", "betas", "cache_control", "diagnostics", "image",
            "moderation", "output_format", "prompt_cache_options", "prompt_cache_retention",
            "user_profile_id"}  # fmt: skip
    own = {name for name in ORDINARY[client] if name not in EXTENSIONS}
    assert own - cases - everywhere - refused - rare == set()
    for name in sorted(own & rare):
        assert convert(client, "gemini_generate", {name: {"a": "b"}})[1] == {name}


def test_harmless_values_are_not_named():
    _, names = convert(
        "openai_chat",
        "gemini_generate",
        {"store": False, "n": 1, "logprobs": False, "metadata": {}, "service_tier": "auto", "user": None},
    )
    assert names == set()


def test_a_result_that_is_an_error_is_named_where_it_is_lost():
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": True}
    messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [result]},
    ]
    _, names = convert("anthropic_messages", "openai_chat", {"messages": messages})
    assert names == {"messages.is_error"}
    _, names = convert("anthropic_messages", "gemini_generate", {"messages": messages})
    assert names == set()


def test_the_request_for_a_summary_of_the_reasoning_is_no_lost_field():
    """The text of the reasoning is returned where the provider has it."""
    for spoken in MODELS:
        assert convert("openai_responses", spoken, {"reasoning": {"summary": "auto"}})[1] == set()


def test_thinking_that_no_provider_has_signed_is_named():
    thinking = {"type": "thinking", "thinking": "x", "signature": UNSIGNED}
    messages = [*BASES["anthropic_messages"]["messages"], {"role": "assistant", "content": [thinking]}]
    for spoken in ("openai_chat", "bedrock_converse"):
        assert convert("anthropic_messages", spoken, {"messages": messages})[1] == {"messages.thinking"}


def test_sampling_that_thinking_replaces_is_named():
    changes = {"reasoning_effort": "high", "temperature": 0.3, "top_k": 3}
    body, names = convert("openai_chat", "anthropic_messages", changes)
    assert names == {"temperature", "top_k"}
    assert not {"temperature", "top_k"} & body.keys()


def test_the_header_is_bounded_and_has_only_names():
    assert lost.header([]) == ""
    assert lost.header(["a", "a", "tools.strict", "two words", "x\r\ny"]) == "a,tools.strict,?"
    long = lost.header(f"field_{number}" for number in range(1000))
    assert long.startswith("field_0,field_1,")
    assert long.endswith(",...")
    assert long.count(",") == lost.MAX_NAMES
    assert len(lost.header("x" * 60 + str(number) for number in range(100))) <= lost.MAX_CHARACTERS
    assert lost.extended("", ["answer.images"]) == "answer.images"
    assert lost.extended("a,?", ["b", "a"]) == "a,?,b"
    assert lost.extended(long, ["b"]) == long


def names_of_effort(client: str, spoken: str, changes: dict[str, Any], model: str, **more: Any) -> set[str]:
    dialect, provider = DIALECTS[client], SPOKEN[spoken]
    call = dialect.decode(msgspec.json.encode({"model": "p/m", **BASES[client], **changes}))
    request: Request = msgspec.structs.replace(dialect.to_internal(call), model=model, **more)
    return set(lost.lost_fields(request, provider.unwritten(request), provider.extra_fields, dialect.feature_fields))


@pytest.mark.parametrize(
    ("spoken", "model", "level", "is_kept"),
    [
        ("anthropic_messages", "claude-opus-4-6", "low", True),
        ("anthropic_messages", "claude-opus-4-6", "minimal", False),
        ("anthropic_messages", "claude-opus-4-6", "xhigh", False),
        ("anthropic_messages", "claude-opus-4-7", "xhigh", True),
        ("anthropic_messages", "claude-opus-5-5", "none", False),
        ("anthropic_messages", "claude-sonnet-5-5", "none", False),
        ("anthropic_messages", "claude-opus-5", "none", True),
        ("anthropic_messages", "claude-sonnet-4-5", "high", True),
        ("anthropic_messages", "claude-sonnet-4-5", "xhigh", False),
        ("bedrock_converse", "anthropic.claude-opus-4-6-v1:0", "xhigh", False),
        ("gemini_generate", "gemini-2.5-flash", "none", True),
        ("gemini_generate", "gemini-2.5-pro", "none", False),
        ("gemini_generate", "gemini-2.5-flash", "xhigh", False),
        ("gemini_generate", "gemini-3-flash", "none", False),
        ("gemini_generate", "gemini-3-flash", "medium", True),
        ("gemini_generate", "gemini-3-pro", "medium", False),
        ("mistral_chat", "magistral-medium", "low", True),
    ],
)
def test_an_effort_that_the_model_does_not_have_is_named(spoken: str, model: str, level: str, is_kept: bool):
    names = names_of_effort("openai_chat", spoken, {"reasoning_effort": level}, model)
    assert names == (set() if is_kept else {"reasoning_effort"})


@pytest.mark.parametrize(
    ("spoken", "model", "level", "is_kept"),
    [
        ("openai_chat", "gpt-5", "low", True),
        ("openai_chat", "gpt-5", "max", False),
        ("mistral_chat", "magistral-medium", "high", True),
        ("mistral_chat", "magistral-medium", "low", False),
    ],
)
def test_an_effort_of_anthropic_that_the_model_does_not_have_is_named(
    spoken: str, model: str, level: str, is_kept: bool
):
    changes = {"output_config": {"effort": level}}
    names = names_of_effort("anthropic_messages", spoken, changes, model, reasons=True)
    assert names == (set() if is_kept else {"output_config.effort"})


@pytest.mark.parametrize(
    ("spoken", "model", "budget", "names"),
    [
        ("openai_chat", "gpt-5", 5000, {"thinking.budget_tokens"}),
        ("gemini_generate", "gemini-3-flash", 5000, {"thinking.budget_tokens"}),
        ("gemini_generate", "gemini-2.5-flash", 5000, set()),
        ("gemini_generate", "gemini-2.5-flash", 30_000, {"thinking"}),
        ("bedrock_converse", "anthropic.claude-sonnet-4-5-v1:0", 5000, set()),
        ("bedrock_converse", "anthropic.claude-sonnet-4-5-v1:0", 40_000, {"thinking"}),
        ("bedrock_converse", "anthropic.claude-opus-4-6-v1:0", 5000, {"thinking.budget_tokens"}),
        ("bedrock_converse", "amazon.titan-text", 5000, {"thinking"}),
    ],
)
def test_a_budget_is_named_if_only_a_level_or_another_budget_is_sent(
    spoken: str, model: str, budget: int, names: set[str]
):
    changes = {"thinking": {"type": "enabled", "budget_tokens": budget, "display": "omitted"}}
    assert names_of_effort("anthropic_messages", spoken, changes, model) == names
