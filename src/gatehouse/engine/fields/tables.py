"""Tables of the fields of model calls: the ordinary ones, and those that need an organization's permission.

A field that is in no table is unknown; `UNKNOWN_FIELDS` decides whether it passes or is refused.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

#: The effect of a field, as a phrase that follows its name. Also the `reason` in the administration API.
OTHER_MODEL: Final = "names another model"
ELSEWHERE: Final = "names another destination or other credentials"
THIRD_PARTY: Final = "sends content to a third party"
HOSTED_TOOL: Final = "runs a tool outside the gateway"
KEEPS_STATE: Final = "keeps content at the provider"
KEPT_FILE: Final = "refers to a file at the provider, which may be another user's"
KEPT_CONTAINER: Final = "refers to a container at the provider, which may be another user's"
PRICE: Final = "changes the price"
OPAQUE: Final = "carries further fields that the gateway does not read"


class FieldGuard(NamedTuple):
    """The reason why a field needs permission. Null, false, an empty list and the `harmless` values pass without
    permission."""

    reason: str
    harmless: tuple[Any, ...] = ()

    def passes(self, value: Any) -> bool:
        return value is None or value is False or value == [] or value in self.harmless


#: Guards by the field's name.
Guards: TypeAlias = Mapping[str, FieldGuard]

NO_GUARDS: Final[Guards] = {}

#: Prefix of the names of hosted tools: `tools.web_search`.
TOOLS: Final = "tools."
#: Allows every hosted tool.
ALL_TOOLS: Final = "tools.*"
TOOL: Final = FieldGuard(HOSTED_TOOL)

#: The name in permissions of all ids of files: in parts of messages, in tools, and of recordings of answers.
FILE_ID: Final = "file_id"
#: The name of the ids of containers in permissions.
CONTAINER: Final = "container"
#: The name of the ids of stores of documents in permissions.
VECTOR_STORE_IDS: Final = "vector_store_ids"
#: The field that continues a stored response. The Responses API binds it to the caller (`stages.calls.response_state`);
#: elsewhere no permission allows it.
PREVIOUS_RESPONSE: Final = "previous_response_id"

_TIERS: Final = ("auto", "default", "standard", "standard_only", "on_demand")

_MODELS: Final[Guards] = {
    name: FieldGuard(OTHER_MODEL)
    for name in (
        "models", "route", "provider", "preset", "model_list", "deployment_id", "agent_id",
        "context_window_fallbacks", "content_policy_fallbacks", "disable_fallbacks", "draft_model", "safety_model",
        "adapter_id", "adapter_source", "svg", "lora", "lora_path", "lora_request", "compound_custom",
    )
}  # fmt: skip
_DESTINATIONS: Final[Guards] = {
    name: FieldGuard(ELSEWHERE)
    for name in (
        "api_base", "base_url", "api_key", "api_type", "api_version", "custom_llm_provider", "user_config",
        "extra_headers", "headers", "organization", "aws_access_key_id", "aws_secret_access_key", "aws_session_token",
        "aws_region_name", "vertex_project", "vertex_location", "vertex_credentials", "callbacks", "success_callback",
        "failure_callback", "webhook_url", "trace",
    )
}  # fmt: skip
_HOSTED: Final[Guards] = {
    name: FieldGuard(HOSTED_TOOL)
    for name in (
        "web_search_options", "web_search", "search_parameters", "search_settings", "enable_search", "search_options",
        "enable_code_interpreter", "mcp", "mcp_servers", "mcp_tools", "code_execution", "server_tools", "hosted_tools",
    )
}  # fmt: skip
_SENT_AWAY: Final[Guards] = {
    name: FieldGuard(THIRD_PARTY)
    for name in (
        "plugins", "transforms", "data_sources", "connectors", "enhancements", VECTOR_STORE_IDS, "retrieval",
        "knowledge_base", "knowledge_base_ids", "guardrail_config",
    )
}  # fmt: skip
_KEPT: Final[Guards] = {
    "store": FieldGuard(KEEPS_STATE),
    **{
        name: FieldGuard(KEEPS_STATE)
        for name in (
            "background",
            "deferred",
            "cached_content",
            PREVIOUS_RESPONSE,
            "conversation",
            "conversation_id",
            "thread_id",
            "prompt_id",
        )
    },
    "prompt_cache_retention": FieldGuard(KEEPS_STATE, ("in_memory", "in-memory")),
    FILE_ID: FieldGuard(KEPT_FILE),
    CONTAINER: FieldGuard(KEPT_CONTAINER),
}
#: Fields that continue a conversation that the provider stores. The gateway cannot tell whose conversation it is, so no
#: permission allows these fields.
NEVER_ALLOWED: Final = frozenset({"conversation", "conversation_id", "thread_id"})
_PRICES: Final[Guards] = {
    "service_tier": FieldGuard(PRICE, _TIERS),
    "speed": FieldGuard(PRICE, ("standard",)),
    "inference_geo": FieldGuard(PRICE, ("global",)),
    "performance_config": FieldGuard(PRICE),
    "input_cost_per_token": FieldGuard(PRICE),
    "output_cost_per_token": FieldGuard(PRICE),
}
_CARRIERS: Final[Guards] = {
    name: FieldGuard(OPAQUE)
    for name in (
        "extra_body", "extra_query", "provider_options", "google", "vertex", "gateway", "litellm_params",
        "model_kwargs", "additional_model_request_fields",
    )
}  # fmt: skip

#: The guards of every dialect, because the server at a provider's address may be of any kind, also an aggregator.
OPENAI_CHAT: Final[Guards] = {
    **_MODELS, **_DESTINATIONS, **_HOSTED, **_SENT_AWAY, **_KEPT, **_PRICES, **_CARRIERS,
}  # fmt: skip
#: The guards for a local server, which stores nothing at a vendor and has no prices.
LOCAL: Final[Guards] = {
    name: guard
    for name, guard in OPENAI_CHAT.items()
    if name not in {"store", "prompt_cache_retention", FILE_ID, "service_tier", "speed", "inference_geo"}
}

_CHAT_FIELDS: Final = frozenset({
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls",
    "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options", "reasoning_effort",
    "response_format", "safety_identifier", "seed", "stop", "stream", "stream_options", "temperature", "tool_choice",
    "tools", "top_logprobs", "top_p", "user", "verbosity",
    # Extensions of servers that speak the same dialect.
    "add_generation_prompt", "allowed_token_ids", "bad_words", "best_of", "cache_prompt", "cache_salt",
    "chat_template", "chat_template_kwargs", "continue_final_message", "documents", "dry_base", "dry_multiplier",
    "echo", "enable_thinking", "format", "grammar", "guardrails", "guided_choice", "guided_decoding_backend",
    "guided_grammar", "guided_json", "guided_regex", "ignore_eos", "include_reasoning", "include_stop_str_in_output",
    "json_schema", "keep_alive", "length_penalty", "min_p", "min_tokens", "mirostat", "mirostat_eta", "mirostat_tau",
    "mm_processor_kwargs", "n_predict", "num_ctx", "options", "priority", "prompt_logprobs", "prompt_mode",
    "random_seed", "raw", "reasoning", "reasoning_format", "regex", "repeat_penalty", "repetition_penalty",
    "request_id", "return_token_ids", "return_tokens_as_token_ids", "safe_prompt", "samplers",
    "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids", "structured_outputs", "think",
    "thinking", "thinking_budget", "top_a", "top_k", "truncate_prompt_tokens", "typical_p", "use_beam_search",
    "user_security_context", "usage", "separate_reasoning", "stream_reasoning", "cache_control",
})  # fmt: skip
_RESPONSES_FIELDS: Final = frozenset({
    "access_programs", "context_management", "image", "include", "input", "instructions", "max_output_tokens",
    "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls", "prompt", "prompt_cache_key",
    "prompt_cache_options", "reasoning", "safety_identifier", "stream", "stream_options", "temperature", "text",
    "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user", "client_metadata",
    # Fields that are forwarded to Mistral in this dialect, too.
    "guardrails", "min_tokens", "prompt_mode", "random_seed", "repetition_penalty", "safe_prompt",
})  # fmt: skip
_MESSAGES_FIELDS: Final = frozenset({
    "anthropic_beta", "anthropic_version", "betas", "cache_control", "context_management", "diagnostics",
    "max_tokens", "messages", "metadata", "model", "output_config", "output_format", "stop_sequences", "stream",
    "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p", "user_profile_id",
})  # fmt: skip
_COMPLETIONS_FIELDS: Final = (_CHAT_FIELDS - {"messages", "tools", "tool_choice", "functions", "function_call"}) | {
    "prompt", "suffix",
}  # fmt: skip
_EMBEDDINGS_FIELDS: Final = frozenset({
    "dimensions", "embedding_types", "encoding_format", "encoding_type", "input", "input_type", "instruction",
    "keep_alive", "late_chunking", "model", "normalize", "normalized", "options", "output_dimension", "output_dtype",
    "priority", "request_id", "stream", "task", "truncate", "truncate_prompt_tokens", "truncation", "user",
})  # fmt: skip

_MODERATIONS_FIELDS: Final = frozenset({"input", "model", "stream"})
_RERANK_FIELDS: Final = frozenset({
    "documents", "instruction", "max_chunks_per_doc", "max_tokens_per_doc", "model", "priority", "query",
    "rank_fields", "return_documents", "stream", "top_n", "truncate_prompt_tokens", "truncation", "user",
})  # fmt: skip
_IMAGES_FIELDS: Final = frozenset({
    "background", "image", "input_fidelity", "mask", "model", "moderation", "n", "negative_prompt",
    "output_compression", "output_format", "partial_images", "prompt", "quality", "response_format",
    "safety_identifier", "seed", "size", "stream", "style", "user",
})  # fmt: skip
_RECORDINGS_FIELDS: Final = frozenset({
    "chunking_strategy", "include", "keywords", "known_speaker_names", "known_speaker_references", "language",
    "languages", "model", "prompt", "response_format", "stream", "temperature", "timestamp_granularities",
})  # fmt: skip
_SPEECH_FIELDS: Final = frozenset({
    "input", "instructions", "model", "response_format", "speed", "stream", "stream_format", "user", "voice",
})  # fmt: skip

#: By the client's dialect: fields that pass to every provider.
ORDINARY: Final[Mapping[str, frozenset[str]]] = {
    "openai_chat": _CHAT_FIELDS,
    "openai_responses": _RESPONSES_FIELDS,
    "anthropic_messages": _MESSAGES_FIELDS,
    "openai_completions": _COMPLETIONS_FIELDS,
    "openai_embeddings": _EMBEDDINGS_FIELDS,
    "openai_moderations": _MODERATIONS_FIELDS,
    "cohere_rerank": _RERANK_FIELDS,
    "openai_image_generation": _IMAGES_FIELDS,
    "openai_image_edits": _IMAGES_FIELDS,
    "openai_image_variations": _IMAGES_FIELDS,
    "openai_transcriptions": _RECORDINGS_FIELDS,
    "openai_translations": _RECORDINGS_FIELDS,
    "openai_speech": _SPEECH_FIELDS,
    "anthropic_token_count": _MESSAGES_FIELDS,
    "openai_token_count": _RESPONSES_FIELDS,
    "openai_compaction": _RESPONSES_FIELDS,
}
_RESPONSES_TOOLS: Final[frozenset[str | None]] = frozenset({
    "function", "custom", "namespace", "tool_search", "local_shell", "apply_patch", "computer",
    "computer_use_preview",
})  # fmt: skip
#: By the client's dialect: hosted tools that are left out of the call instead of refused, because agents declare them
#: in every request.
LEFT_OUT_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    dialect: frozenset({"tools.web_search", "tools.image_generation"})
    for dialect in ("openai_responses", "openai_compaction", "openai_token_count")
}
#: Types of tools that the client runs and describes by a JSON schema or a grammar. None: a tool without a type.
DESCRIBED_TOOLS: Final[frozenset[str | None]] = frozenset({None, "function", "custom"})
_TOOL_OPTIONS: Final = frozenset({"allowed_callers", "cache_control", "defer_loading", "description", "name", "type"})
_RESPONSES_TOOL_FIELDS: Final = _TOOL_OPTIONS | {"format", "output_schema", "parameters", "strict"}
_MESSAGES_TOOL_FIELDS: Final = _TOOL_OPTIONS | {"eager_input_streaming", "input_examples", "input_schema", "strict"}
#: By the client's dialect: the fields of `DESCRIBED_TOOLS`.
TOOL_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "openai_chat": frozenset({"cache_control", "custom", "function", "type"}),
    "openai_responses": _RESPONSES_TOOL_FIELDS,
    "openai_token_count": _RESPONSES_TOOL_FIELDS,
    "openai_compaction": _RESPONSES_TOOL_FIELDS,
    "anthropic_messages": _MESSAGES_TOOL_FIELDS,
    "anthropic_token_count": _MESSAGES_TOOL_FIELDS,
}
#: Fields of the object `function` or `custom` in a tool of `openai_chat`.
FUNCTION_FIELDS: Final = frozenset({"cache_control", "description", "format", "name", "parameters", "strict"})
_ANTHROPIC_TOOL_PREFIXES: Final = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_")
#: By the client's dialect: types of tools that the client runs itself. None: a tool without a type.
CLIENT_TOOLS: Final[Mapping[str, frozenset[str | None]]] = {
    "openai_chat": frozenset({"function", "custom"}),
    "openai_responses": _RESPONSES_TOOLS,
    "openai_token_count": _RESPONSES_TOOLS,
    "openai_compaction": _RESPONSES_TOOLS,
    "anthropic_messages": frozenset({None, "custom"}),
    "anthropic_token_count": frozenset({None, "custom"}),
}
#: Prefixes of further types that the client runs itself, which end with a version.
CLIENT_TOOL_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic_messages": _ANTHROPIC_TOOL_PREFIXES,
    "anthropic_token_count": _ANTHROPIC_TOOL_PREFIXES,
}
