"""System messages for providers that take them only before the conversation."""

import msgspec
import pytest

from gatehouse.engine.conversation.conversion.system_messages import has_later, leading_texts, placed
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import FormMessage, Image, Request, Text, ToolCall, ToolResult
from gatehouse.engine.providers.registry import SPOKEN

SYSTEM = FormMessage("system", (Text("Be kind."),))
LATE_SYSTEM = FormMessage("system", (Text("Be brief."),))
MARKED = FormMessage("user", (Text("<system>\nBe brief.\n</system>"),))
QUESTION = FormMessage("user", (Text("Hi"),))
ANSWER = FormMessage("assistant", (Text("Hello"),))
CALL = FormMessage("assistant", (ToolCall(id="t", name="f", arguments="{}"),))
RESULT = FormMessage("user", (ToolResult(call_id="t", content=(Text("42"),)),))
PICTURE = Image(data="aGk=", media_type="image/png")
FRONT_ONLY = ("anthropic_messages", "gemini_generate", "mistral_chat", "bedrock_converse")


def request(*messages: FormMessage) -> Request:
    return Request(model="m", messages=messages)


def test_messages_before_the_conversation_stay() -> None:
    before = request(SYSTEM, LATE_SYSTEM, QUESTION, FormMessage("system", ()))
    assert not has_later(before.messages)
    assert placed(before) is before
    assert leading_texts(before.messages) == ["Be kind.", "Be brief."]


def test_a_later_message_becomes_a_marked_text_of_the_user_at_its_place() -> None:
    after = placed(request(SYSTEM, QUESTION, ANSWER, LATE_SYSTEM, FormMessage("system", ()), QUESTION))
    assert after.messages == (SYSTEM, QUESTION, ANSWER, MARKED, QUESTION)
    assert leading_texts(after.messages) == ["Be kind."]


def test_no_message_separates_calls_of_tools_from_their_results() -> None:
    assert placed(request(QUESTION, CALL, LATE_SYSTEM, RESULT)).messages == (QUESTION, CALL, RESULT, MARKED)
    assert placed(request(QUESTION, CALL, LATE_SYSTEM, QUESTION)).messages == (QUESTION, CALL, MARKED, QUESTION)
    assert placed(request(QUESTION, CALL, LATE_SYSTEM)).messages == (QUESTION, CALL, MARKED)


def test_a_message_between_several_calls_and_results_follows_all_results() -> None:
    def call(*ids: str) -> FormMessage:
        return FormMessage("assistant", tuple(ToolCall(id=call_id, name="f", arguments="{}") for call_id in ids))

    def result(*ids: str) -> FormMessage:
        return FormMessage("user", tuple(ToolResult(call_id=call_id, content=(Text("1"),)) for call_id in ids))

    expected = (QUESTION, call("a", "b"), result("a"), result("b"), MARKED)
    for messages in (
        (QUESTION, call("a", "b"), LATE_SYSTEM, result("a"), result("b")),
        (QUESTION, call("a", "b"), result("a"), LATE_SYSTEM, result("b")),
    ):
        assert placed(request(*messages)).messages == expected
    # In the Responses API each call is an item of its own.
    items = (QUESTION, call("a"), LATE_SYSTEM, call("b"), result("a"), result("b"))
    assert placed(request(*items)).messages == (QUESTION, call("a"), call("b"), result("a"), result("b"), MARKED)


@pytest.mark.parametrize("spoken", [*FRONT_ONLY, "openai_chat"])
def test_a_file_in_a_system_message_before_the_conversation_is_refused(spoken: str) -> None:
    with pytest.raises(InvalidField) as refused:
        SPOKEN[spoken].from_internal(request(FormMessage("system", (Text("Look."), PICTURE)), QUESTION))
    assert refused.value.extra == {"param": "messages"}


@pytest.mark.parametrize("spoken", FRONT_ONLY)
def test_a_file_in_a_later_system_message_is_the_users(spoken: str) -> None:
    later = FormMessage("system", (PICTURE,))
    body = SPOKEN[spoken].from_internal(request(QUESTION, later))
    assert "aGk=" in msgspec.json.encode(body).decode()
