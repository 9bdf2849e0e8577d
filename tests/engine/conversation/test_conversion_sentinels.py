"""A conversion loses nothing without a word: each value of a request is sent, or its field is named, or the request is
refused with the name of a field."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sentinel_requests import REQUESTS, Body

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Request
from gatehouse.engine.providers.registry import SPOKEN

#: a dialect of a provider and a model
TARGETS = [
    ("openai_chat", "gpt-5"),
    ("openai_chat", "gpt-4o"),
    ("anthropic_messages", "claude-sonnet-4-5"),
    ("anthropic_messages", "claude-opus-5-5"),
    ("gemini_generate", "gemini-2.5-flash"),
    ("gemini_generate", "gemini-3-pro"),
    ("mistral_chat", "magistral-medium"),
    ("bedrock_converse", "anthropic.claude-sonnet-4-5-v1:0"),
    ("bedrock_converse", "amazon.nova-pro-v1:0"),
]
EXAMPLES = 25
_SENTINEL = re.compile(r"snt\d{4}x|(?<![\d.])7\d{7}(?!\d)|0\.50\d{4}", re.IGNORECASE)


def sentinels(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each sentinel of a body with its path: names of fields, and types of the objects around it."""
    if isinstance(value, dict):
        kind = value.get("type")
        path = (*path, kind) if isinstance(kind, str) else path
        for name, member in value.items():
            yield from ((text, path) for text in _SENTINEL.findall(name))
            yield from sentinels(member, (*path, name))
    elif isinstance(value, list):
        for member in value:
            yield from sentinels(member, path)
    else:
        yield from ((text, path) for text in _SENTINEL.findall(json.dumps(value)))


def is_named(path: tuple[str, ...], names: set[str]) -> bool:
    """Return whether a name of a lost field denotes the field at a path, or one around it. If the choice of a tool is
    lost, only this tool is offered."""
    if "tools" in path and "tool_choice" in names:
        return True
    for name in names:
        first, last = name.partition(".")[0], name.rpartition(".")[2]
        if path[:1] == (first,) and any(last in part for part in path):
            return True
    return False


def convert(body: Body, client: str, spoken: str, model: str) -> tuple[str, set[str], str | None]:
    """Return the provider's body and the names of the lost fields, or the field because of which the request is
    refused."""
    dialect, provider = DIALECTS[client], SPOKEN[spoken]
    call = dialect.decode(msgspec.json.encode(body))
    try:
        dialect.refuse_unconvertible(call)
        request: Request = msgspec.structs.replace(dialect.to_internal(call), model=model)
        sent = msgspec.json.encode(provider.from_internal(request)).decode()
    except InvalidField as error:
        return "", set(), str(error.extra["param"])
    names = lost.lost_fields(request, provider.unwritten(request), provider.extra_fields, dialect.feature_fields)
    return sent.lower(), set(names), None


@pytest.mark.parametrize("client", REQUESTS)
def test_each_value_of_a_request_is_sent_or_named_or_refused(client: str) -> None:
    converted, refused = 0, 0

    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal converted, refused
        body = REQUESTS[client](data.draw)
        for spoken, model in TARGETS:
            if spoken == client:
                continue
            sent, names, param = convert(body, client, spoken, model)
            if param is not None:
                # Providers' conversions call the messages of all clients `messages`.
                assert re.split(r"[.\[]", param)[0] in {*body, "messages"}
                refused += 1
                continue
            converted += 1
            missing = {
                (value, ".".join(path))
                for value, path in sentinels(body)
                if value.lower() not in sent and not is_named(path, names)
            }
            assert not missing, (missing, spoken, model, names, sent)

    check()
    assert converted > refused, (converted, refused)
