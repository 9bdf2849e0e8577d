"""Titles that a model makes, once a conversation has its first whole answer (reference 2, System configuration entry:
`auto_title_enabled`, `auto_title_model`). A title that cannot be made is no fault of anybody's: there is none then."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, Final, TypeAlias
from uuid import UUID

from gatehouse.foundation.sealing import Sealer
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.asking import Models, completion, text_of
from gatehouse.platform.conversations.conversations.contents import Contents
from gatehouse.platform.conversations.conversations.context import Said
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.organization.system_config.table import value
from gatehouse.platform.requests import Apart

Making: TypeAlias = Coroutine[Any, Any, None]

#: A worker that stops waits as long for it.
_SECONDS: Final = 20.0
#: Characters of a title, and those of each message that it is made from.
_LONGEST: Final = 80
_READ: Final = 2_000
_INSTRUCTION: Final = (
    "Give the conversation that follows a title of at most six words, in its own language."
    " Answer with the title alone, without quotation marks."
)
_UNSHOWN: Final = re.compile(r"[\x00-\x1f\x7f]+")


async def make(parts: Apart, sealer: Sealer, models: Models, row: ConversationRow, answer_id: UUID) -> None:
    contents = Contents.of(sealer, row.id, row.sealed_key)
    async with parts.reading() as session:
        if await value(session, "auto_title_enabled") != "true":
            return
        now = await table.owned(session, row.id, row.user_id)
        if now is None or now.title is not None or await table.first_answer(session, row.id) != answer_id:
            return
        name = await value(session, "auto_title_model") or now.model
        found = await table.opening(session, row.id, answer_id)
    said = "\n\n".join((contents.open(each.content, each.id) or "")[:_READ] for each in found)
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await models.ask_aside(
                f"/api/conversations/{row.id}/title",
                name,
                [Said("system", _INSTRUCTION), Said("user", said)],
                now.label_numbers,
            )
    except TimeoutError:
        return
    title = "" if answer.answered is None else cleaned(text_of(completion(answer)))
    if title:
        async with parts.changing() as change:
            await table.entitle(change.session, row.id, contents.seal(title, "title"))


def cleaned(said: str) -> str:
    """The first line of what a model said, without the quotes and marks that it was asked not to write."""
    line = next((line for line in said.splitlines() if line.strip()), "")
    line = _UNSHOWN.sub(" ", line).strip().strip("\"'`*#\u201c\u201d\u2018\u2019\u00ab\u00bb ").strip()
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "\u2026"
