"""Creates the title of a conversation with a model after the first complete answer (configuration `auto_title_enabled`,
`auto_title_model`; docs/conversations.md, Titles and summaries). If the creation fails, the conversation stays
untitled."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, Final, TypeAlias
from uuid import UUID

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.calls.asking import ModelCaller, completion, completion_text
from gatehouse.platform.conversations.conversations.calls.context import PromptMessage
from gatehouse.platform.conversations.conversations.contents import SealedContents
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.organization.system_config.table import value
from gatehouse.platform.request.injected import SplitTransactions

TitleTask: TypeAlias = Coroutine[Any, Any, None]

#: Time limit for the creation of a title. A worker that shuts down waits for it.
_TIMEOUT_SECONDS: Final = 20.0
#: Maximum length of a title.
_MAX_TITLE_CHARACTERS: Final = 80
#: Number of characters of each message that are sent to the model.
_MAX_MESSAGE_CHARACTERS: Final = 2_000
_INSTRUCTION: Final = (
    "Give the conversation that follows a title of at most six words, in its own language."
    " Answer with the title alone, without quotation marks."
)
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f]+")


async def make_title(
    transactions: SplitTransactions, sealer: Sealer, models: ModelCaller, row: ConversationRow, answer_id: UUID
) -> None:
    """Create and store a title if `answer_id` is the conversation's first complete answer and the conversation has no
    title."""
    contents = SealedContents.of(sealer, row.id, row.sealed_key)
    async with transactions.reading() as session:
        if await value(session, "auto_title_enabled") != "true":
            return
        current = await table.owned(session, row.id, row.user_id)
        if current is None or current.title is not None or await table.first_answer(session, row.id) != answer_id:
            return
        name = await value(session, "auto_title_model") or current.model
        messages = await table.question_and_answer(session, row.id, answer_id)
    opened = (contents.open(message.content, message.id) or "" for message in messages)
    transcript = "\n\n".join(text[:_MAX_MESSAGE_CHARACTERS] for text in opened)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            answer = await models.ask_separately(
                f"/api/conversations/{row.id}/title",
                name,
                [PromptMessage("system", _INSTRUCTION), PromptMessage("user", transcript)],
                current.label_numbers,
            )
    except TimeoutError:
        return
    title = "" if answer.exchange is None else cleaned(completion_text(completion(answer)))
    if title:
        async with transactions.changing() as change:
            await table.set_title_if_none(change.session, row.id, contents.seal(title, "title"))


def cleaned(text: str) -> str:
    """Return the first line of a model's answer without quotation marks and Markdown, shortened to the maximum
    length."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = _CONTROL_CHARACTERS.sub(" ", line).strip().strip("\"'`*#\u201c\u201d\u2018\u2019\u00ab\u00bb ").strip()
    return line if len(line) <= _MAX_TITLE_CHARACTERS else line[: _MAX_TITLE_CHARACTERS - 1].rstrip() + "\u2026"
