"""Summarizes conversations with the owner's preferred model (`default_summarizer_model_id`, docs/preferences.md), or
else with the conversation's model."""

from typing import Final

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.preferences.table import preferences
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.calls import context
from gatehouse.platform.conversations.conversations.calls.asking import (
    ModelCaller,
    completion,
    completion_text,
    full_name,
)
from gatehouse.platform.conversations.conversations.calls.context import PromptMessage
from gatehouse.platform.conversations.conversations.calls.keeping import with_labels
from gatehouse.platform.conversations.conversations.contents import SealedContents
from gatehouse.platform.conversations.conversations.errors import NothingToSummarize
from gatehouse.platform.conversations.conversations.schemas import Summary
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.request.injected import SplitTransactions

#: A number that is higher than the sequence of every message.
_MAX_SEQUENCE: Final = 2**31 - 1
_INSTRUCTION: Final = (
    "Summarize the conversation that follows, in its own language: what was asked, what was answered, what was decided"
    " and what is open. Answer with the summary alone."
)


async def summarize(
    transactions: SplitTransactions, sealer: Sealer, models: ModelCaller, row: ConversationRow
) -> tuple[Answer, Summary | None]:
    """Create a summary, and store it in place of the previous one. Returns the engine's answer, and the summary, or
    None if the answer is a refusal.

    Raises `NothingToSummarize`.
    """
    contents = SealedContents.of(sealer, row.id, row.sealed_key)
    async with transactions.reading() as session:
        owner_preferences = await preferences(session, row.user_id)
    name = owner_preferences.default_summarizer_model_id or row.model
    model = await models.catalog_entry(name)
    async with transactions.reading() as session:
        rows = await table.earlier_messages(
            session,
            row.id,
            before=_MAX_SEQUENCE,
            limit=context.MAX_MESSAGES,
            text_bytes=context.max_prompt_bytes(model),
        )
    instruction = PromptMessage("system", _INSTRUCTION)
    messages = [PromptMessage(message.role, contents.open(message.content, message.id) or "") for message in rows]
    fitting = context.newest_that_fit(messages, context.max_prompt_tokens(model) - instruction.tokens)
    if not fitting:
        raise NothingToSummarize
    transcript = "\n\n".join(f"{message.role}: {message.content}" for message in fitting)
    answer = await models.ask(name, [instruction, PromptMessage("user", transcript)], row.label_numbers)
    if answer.exchange is None:
        return answer, None
    assert answer.exchange.call_request is not None
    assert answer.exchange.chosen is not None
    text, now = completion_text(completion(answer)), utc_now()
    async with transactions.changing() as change:
        sealed = contents.seal(with_labels(text, answer.exchange.call_request), "summary")
        await table.store_summary(change.session, row.id, sealed, now)
    answering_model = full_name(answer.exchange.chosen.model)
    return answer, Summary(summary=text, model=answering_model, messages=len(fitting), summarized_at=now)
