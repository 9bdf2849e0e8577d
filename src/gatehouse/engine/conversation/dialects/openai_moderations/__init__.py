"""OpenAI's moderations API."""

from typing import Annotated, Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.decoding.answers import UsageReader
from gatehouse.engine.conversation.decoding.bodies import CallShape
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.dialects.passing_only import PassingOnly
from gatehouse.engine.conversation.usage import Usage

#: maximum number of inputs of a call
MAX_INPUTS: Final = 1024
#: the model of a call that specifies none, as in OpenAI's API
DEFAULT_MODEL: Final = "omni-moderation-latest"


class _ModerationsShape(CallShape, gc=False, kw_only=True):
    model: str = DEFAULT_MODEL
    input: str | Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1, max_length=MAX_INPUTS)]


_usage_in = UsageReader("results", UsageShape)


class OpenAIModerations(PassingOnly):
    name = "openai_moderations"
    operation: Literal["moderations"] = "moderations"
    shape = _ModerationsShape

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(_usage_in(body))
