"""Ids of end users for providers that limit their length."""

import msgspec

from gatehouse.engine.conversation.conversion.users import short_user
from gatehouse.engine.conversation.dialects import DIALECTS, PASSING


def test_a_short_id_stays_and_a_long_one_becomes_a_hash():
    assert short_user("u" * 64, 64) == "u" * 64
    digest = short_user("u" * 65, 64)
    assert digest == short_user("u" * 65, 64) != short_user("v" * 65, 64)
    assert len(digest) <= 64
    assert digest.startswith("user_")


def test_openai_gets_a_hash_of_claude_codes_user():
    user = '{"device_id":"' + "0" * 150 + '"}'
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
        "metadata": {"user_id": user},
    }
    messages = DIALECTS["anthropic_messages"]
    request = messages.to_internal(messages.decode(msgspec.json.encode(body)))
    assert PASSING["openai_chat"].from_internal(request)["user"] == short_user(user, 64)
    assert PASSING["anthropic_messages"].from_internal(request)["metadata"]["user_id"] == user
