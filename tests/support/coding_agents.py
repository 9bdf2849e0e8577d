"""Requests in the form in which Codex 0.171 and Claude Code 2.1.332 send them. The structure, the names and the headers
are those of recorded requests; the texts are shorter and our own."""

import copy
from typing import Any

JsonObject = dict[str, Any]


def _schema(*names: str) -> JsonObject:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


def _function(name: str, *parameters: str) -> JsonObject:
    return {
        "type": "function", "name": name, "description": f"The tool {name}.", "strict": False,
        "parameters": _schema(*parameters),
    }  # fmt: skip


CODEX_HEADERS = {
    "accept": "text/event-stream",
    "originator": "codex_exec",
    "user-agent": "codex_exec/0.171.0",
    "x-codex-beta-features": "remote_compaction_v2",
    "session-id": "01a2273a-25d2-7f32-be1c-2bb1bddba7ab",
}

#: The arguments with which the agents' shell tools run a command.
CODEX_ARGUMENTS = {"cmd": "echo 42"}
CLAUDE_ARGUMENTS = {"command": "echo 42", "description": "Print a number"}


def codex_request(model: str, prompt: str) -> JsonObject:
    """Return the first request of a turn of Codex, with all kinds of tools that it offers to models it knows and to
    models that it does not know."""
    developer = [{"type": "input_text", "text": "You are a coding agent."}]
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch" /.+/'}
    return {
        "model": model, "stream": True,
        "input": [
            {"type": "message", "id": "msg_1", "role": "developer", "content": developer},
            {"type": "message", "id": "msg_2", "role": "user", "content": [{"type": "input_text", "text": prompt}]},
        ],
        "tools": [
            _function("exec_command", "cmd"),
            _function("write_stdin", "session_id", "chars"),
            {"type": "custom", "name": "apply_patch", "description": "Changes files.", "format": grammar},
            {
                "type": "namespace", "name": "multi_agent_v1", "description": "Tools for agents.",
                "tools": [_function("spawn_agent", "message"), _function("wait_agent", "id")],
            },
            {"type": "tool_search", "execution": "client", "parameters": _schema("query")},
            {"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]},
        ],
        "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False, "include": ["reasoning.encrypted_content"], "text": {"verbosity": "low"},
        "prompt_cache_key": "01a2273a-25d2-7f32-be1c-2bb1bddba7ab",
        "client_metadata": {"session_id": "01a2273a-25d2-7f32-be1c-2bb1bddba7ab"},
    }  # fmt: skip


def codex_next_request(request: JsonObject, output: list[JsonObject], result: str) -> JsonObject:
    """Return the request that sends the results of all tool calls in `output`, the items of an answer."""
    following = copy.deepcopy(request)
    following["input"] += output
    for item in output:
        if item["type"] in {"function_call", "custom_tool_call"}:
            kind = f"{item['type']}_output"
            following["input"].append({"type": kind, "id": "fco_1", "call_id": item["call_id"], "output": result})
    return following


CLAUDE_HEADERS = {
    "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
    "x-app": "cli",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
    "mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,effort-2025-11-24",
    "anthropic-dangerous-direct-browser-access": "true",
}


def claude_request(model: str, prompt: str) -> JsonObject:
    """Return the first request of a turn of Claude Code."""
    cached = {"cache_control": {"type": "ephemeral"}}
    return {
        "model": model, "stream": True, "max_tokens": 64_000,
        "system": [{"type": "text", "text": "You are an agent.", **cached}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "A reminder."}, {"type": "text", "text": prompt}]},
            {"role": "system", "content": [{"type": "text", "text": "# Environment", **cached}]},
        ],
        "tools": [
            {"name": "Bash", "description": "Runs a command.", "input_schema": _schema("command", "description")},
            {"name": "Read", "description": "Reads a file.", "input_schema": _schema("file_path")},
            {"name": "Later", "description": "Loaded later.", "input_schema": _schema("query"), "defer_loading": True},
        ],
        "metadata": {"user_id": '{"device_id":"7dc3","account_uuid":"","session_id":"ce5c"}'},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
    }  # fmt: skip


def claude_next_request(request: JsonObject, content: list[JsonObject], result: str) -> JsonObject:
    """Return the request that sends the results of all tool calls in `content`, the blocks of an answer."""
    following = copy.deepcopy(request)
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": result, "is_error": False}
        for block in content
        if block["type"] == "tool_use"
    ]
    following["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": results},
        {"role": "system", "content": "The remaining tokens: 1000."},
    ]
    return following


def claude_loading_request(request: JsonObject, content: list[JsonObject], *names: str) -> JsonObject:
    """Return the request that follows a search for deferred tools: the results of all tool calls in `content`, the
    blocks of an answer, refer to the named tools, which a system message then adds."""
    following = claude_next_request(request, content, "")
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    for result in following["messages"][-2]["content"]:
        result["content"] = references
    following["messages"][-1] = {
        "role": "system",
        "content": [{"type": "tool_addition", "tool": reference} for reference in references],
    }
    return following
