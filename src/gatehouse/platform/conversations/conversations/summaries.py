"""Summaries, by the model that the owner prefers for them (reference 2, User preferences:
`default_summarizer_model_id`), else by the conversation's own."""

from typing import Final

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.sealing import Sealer
from gatehouse.platform.access.preferences.table import preferences
from gatehouse.platform.conversations.conversations import context, table
from gatehouse.platform.conversations.conversations.asking import Models, completion, name_of, text_of
from gatehouse.platform.conversations.conversations.contents import Contents
from gatehouse.platform.conversations.conversations.context import Said
from gatehouse.platform.conversations.conversations.errors import NothingToSummarize
from gatehouse.platform.conversations.conversations.keeping import as_shown
from gatehouse.platform.conversations.conversations.schemas import Summary
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.requests import Apart

_BEHIND_THE_LAST: Final = 2**31 - 1
_INSTRUCTION: Final = (
    "Summarize the conversation that follows, in its own language: what was asked, what was answered, what was decided"
    " and what is open. Answer with the summary alone."
)


async def summarize(
    parts: Apart, sealer: Sealer, models: Models, row: ConversationRow
) -> tuple[Answer, Summary | None]:
    """The engine's answer, and the summary if there is one; the conversation keeps the newest.

    Raises `NothingToSummarize`. What the pipeline refuses is an answer.
    """
    contents = Contents.of(sealer, row.id, row.sealed_key)
    async with parts.reading() as session:
        chosen = await preferences(session, row.user_id)
    name = chosen.default_summarizer_model_id or row.model
    model = await models.known(name)
    async with parts.reading() as session:
        found = await table.earlier(
            session,
            row.id,
            before=_BEHIND_THE_LAST,
            most=context.MOST_MESSAGES,
            text_bytes=context.text_bytes(model),
        )
    instruction = Said("system", _INSTRUCTION)
    said = [Said(each.role, contents.open(each.content, each.id) or "") for each in found]
    fitting = context.that_fit(said, context.room(model) - instruction.tokens)
    if not fitting:
        raise NothingToSummarize
    told = "\n\n".join(f"{each.role}: {each.content}" for each in fitting)
    answer = await models.ask(name, [instruction, Said("user", told)], row.label_numbers)
    if answer.answered is None:
        return answer, None
    assert answer.answered.asked is not None
    assert answer.answered.chosen is not None
    text, now = text_of(completion(answer)), utc_now()
    async with parts.changing() as change:
        kept = contents.seal(as_shown(text, answer.answered.asked), "summary")
        await table.keep_summary(change.session, row.id, kept, now)
    by = name_of(answer.answered.chosen.model)
    return answer, Summary(summary=text, model=by, messages=len(fitting), summarized_at=now)
