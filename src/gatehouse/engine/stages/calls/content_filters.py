"""Content filters of the organization: keywords, topics and instructions (docs/content-filters.md).

Blocking filters are evaluated before DLP. Instructions are added after DLP, because they are not the caller's text."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

from gatehouse.detection.keywords import passages
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.slots import Slot, slots_in_steps
from gatehouse.engine.dlp.body import separator_between
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.steps import Steps, T, finish
from gatehouse.engine.dlp.tiers import Detectors, TierFailed
from gatehouse.engine.dlp.turns import LONG_TEXT_CHARACTERS, NO_OWNER, SCHEDULER, OverBudget, WorkBudget, WorkOwner
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.stages.calls.dlp_input import owner
from gatehouse.engine.verdict import ALLOW, MaybeVerdict, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden, Refusal
from gatehouse.policy.filters import Filter, FilterSet

#: Fields of a body that contain the conversation.
_CONVERSATION: Final = (
    "system",
    "instructions",
    "messages",
    "input",
    "text",
    "prompt",
    "suffix",
    "query",
    "documents",
)
#: Fields with declarations. A model also reads the descriptions in them. Names and schemas have no topic.
_DECLARED: Final = ("tools", "functions")
#: Fields of a declaration that a model reads. The definition is the grammar of a custom tool.
_READ: Final = frozenset({"description", "definition"})


class ContentFilterViolation(Forbidden):
    """A content filter matched the call: 403 with `filter_id`. The matched word is not named, because a caller could
    then find out the whole word list by guessing."""

    type = "content_filter_violation"
    code = "content_filter_violation"
    message = "A content filter of your organization does not permit this request."


class Judgement(NamedTuple):
    """The result of the filters. `blocking` is the first filter that matches, `failed` are the filters that could not
    be evaluated, and `reason` is the reason for that."""

    blocking: Filter | None
    failed: Sequence[Filter] = ()
    reason: str | None = None


def check(x: CallRequest, ports: Ports) -> MaybeVerdict:
    """Refuse a call that matches a filter. Refuses with `DlpUnavailable` if a topic cannot be evaluated and
    `DLP_FAIL_MODE` is `closed`."""
    filter_set = x.identified.policy.filters
    return _check(x, filter_set, ports) if filter_set.filters else ALLOW


async def _check(x: CallRequest, filter_set: FilterSet, ports: Ports) -> Verdict:
    filters = filter_set.of(x.identified.caller.groups)
    size, work_owner = x.body_bytes, owner(x.identified.caller)
    try:
        blocking, failed, _ = await evaluate(filter_set, filters, x.call.body, ports, size=size, work_owner=work_owner)
    except Refusal as refused:
        # The scheduler refuses the work if too many long texts wait.
        return Refuse(refused)
    x.rule_events.extend(_event(content_filter, "failed") for content_filter in failed)
    if blocking is not None:
        x.rule_events.append(_event(blocking, "matched"))
        return Refuse(ContentFilterViolation(filter_id=blocking.id))
    if failed and ports.dlp.fail_mode == "closed":
        return Refuse(DlpUnavailable(headers={"Retry-After": "5"}))
    return ALLOW


def instruct(x: CallRequest, ports: Ports) -> Verdict:
    """Insert the organization's instructions before the system prompt, in the order of the filters."""
    filter_set = x.identified.policy.filters
    if filter_set.filters:
        own = instructions(filter_set.of(x.identified.caller.groups))
        if own:
            try:
                DIALECTS[x.call.dialect].prepend_instructions(x.call.body, "\n\n".join(own))
            except InvalidField as error:
                return Refuse(error)
    return ALLOW


def instructions(filters: Sequence[Filter]) -> list[str]:
    return [content_filter.instruction for content_filter in filters if content_filter.instruction]


async def evaluate(
    filter_set: FilterSet,
    filters: Sequence[Filter],
    body: dict[str, Any],
    ports: Ports,
    *,
    size: int = 0,
    work_owner: WorkOwner = NO_OWNER,
) -> Judgement:
    """Evaluate the filters that apply to a caller, in order. `size` is the size of the body in bytes. A long body is
    inspected by the fair scheduler as work of `work_owner`, within the budget of the pattern tier."""
    budget = WorkBudget(work_seconds=ports.dlp.pattern_work_seconds, timeout_seconds=ports.dlp.pattern_timeout_seconds)

    async def done(steps: Steps[T]) -> T:
        return (
            finish(steps) if size <= LONG_TEXT_CHARACTERS else await SCHEDULER.run(work_owner, steps, budget, size=size)
        )

    try:
        keyword_match = await done(_first_with_keyword(filter_set, filters, body))
        earlier_filters = filters if keyword_match is None else filters[: filters.index(keyword_match)]
        topic_filters = [content_filter for content_filter in earlier_filters if content_filter.topics]
        texts = await done(_with_topics(body)) if topic_filters else []
    except OverBudget as over:
        return Judgement(
            None,
            [content_filter for content_filter in filters if content_filter.keywords or content_filter.topics],
            over.reason,
        )
    try:
        return Judgement(await _first_with_topic(topic_filters, texts, ports.detectors) or keyword_match)
    except TierFailed as failed:
        return Judgement(keyword_match, topic_filters, failed.reason)


def _first_with_keyword(filter_set: FilterSet, filters: Sequence[Filter], body: dict[str, Any]) -> Steps[Filter | None]:
    words = filter_set.keywords
    if words is None:
        return None
    matching_passages: list[bytes] = []
    texts: list[Slot] = []
    for slot in slots_in_steps(body):
        yield
        if isinstance(slot, Slot):
            texts.append(slot)
    for passage in _passages(texts, words.longest):
        yield
        if words.within(passage):
            matching_passages.append(passage)
    for content_filter in filters:
        for passage in matching_passages if content_filter.keywords is not None else ():
            yield
            if content_filter.keywords is not None and content_filter.keywords.within(passage):
                return content_filter
    return None


def _passages(texts: Sequence[Slot], longest: int) -> Iterator[bytes]:
    plain = [slot for slot in texts if not slot.json_text]
    gaps = [*(separator_between(slot, following) for slot, following in pairwise(plain)), ""]
    text = "".join(f"{slot.text}{between}" for slot, between in zip(plain, gaps, strict=False))
    as_json = (passages(slot.text, longest, json_escapes=True) for slot in texts if slot.json_text)
    return chain(passages(text, longest), *as_json)


def _with_topics(body: dict[str, Any]) -> Steps[list[str]]:
    """Return the texts of a body that can have a topic, without repetitions."""
    conversation: dict[str, Any] = {name: body[name] for name in _CONVERSATION if name in body}
    declared: dict[str, Any] = {name: body[name] for name in _DECLARED if name in body}
    texts: dict[str, None] = {}
    for slot in slots_in_steps(conversation):
        yield
        if isinstance(slot, Slot) and not (slot.is_key or slot.is_sealed):
            texts[slot.text] = None
    for slot in slots_in_steps(declared):
        yield
        if isinstance(slot, Slot) and slot.key in _READ:
            texts[slot.text] = None
    return list(texts)


async def _first_with_topic(filters: Sequence[Filter], texts: Sequence[str], detectors: Detectors) -> Filter | None:
    """Return the first filter with a matching topic, or None. Raises `TierFailed`."""
    topics = list(dict.fromkeys(topic for content_filter in filters for topic in content_filter.topics))
    if not texts or not topics:
        return None
    scores = await detectors.semantic(texts, topics)
    highest = {topic: max(text_scores.get(topic, 0.0) for text_scores in scores) for topic in topics}
    return next(
        (
            content_filter
            for content_filter in filters
            if any(highest[t] >= content_filter.threshold for t in content_filter.topics)
        ),
        None,
    )


def _event(content_filter: Filter, result: str) -> RuleEvent:
    return RuleEvent(
        kind="content_filter",
        rule_id=content_filter.id,
        rule_name=content_filter.name,
        action=content_filter.filter_type,
        result=result,
    )
