"""Keywords, topics and instructions of the organization (reference 3, Content filter). What blocks is judged before any
DLP; instructions are added behind it: they are not the caller's words."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

from gatehouse.detection.keywords import SLICE, passages
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Slot, slots
from gatehouse.engine.dlp.body import gap
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.tiers import Detectors, TierFailed
from gatehouse.engine.exchange import Asked
from gatehouse.engine.outcome import RuleEvent
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Said, Verdict
from gatehouse.foundation.errors import Forbidden
from gatehouse.policy.filters import Filter, FilterSet

#: Fields of a body that hold what is talked about; tools' descriptions and the like have no topic.
_CONVERSATION: Final = ("system", "instructions", "messages", "input", "text")


class ContentFilterViolation(Forbidden):
    """403 with `filter_id`. What was found is not told: who guesses at a word list would be told its words."""

    type = "content_filter_violation"
    code = "content_filter_violation"
    message = "A content filter of your organization does not permit this request."


class Judgement(NamedTuple):
    """`blocking` is the first filter that objects; `failed` those that could not be asked, `reason` why."""

    blocking: Filter | None
    failed: Sequence[Filter] = ()
    reason: str | None = None


def check(x: Asked, ports: Ports) -> Said:
    """Raises `DlpUnavailable` where a topic cannot be judged and `DLP_FAIL_MODE` is `closed`."""
    filter_set = x.identified.policy.filters
    return _check(x, filter_set, ports) if filter_set.filters else ALLOW


async def _check(x: Asked, filter_set: FilterSet, ports: Ports) -> Verdict:
    filters = filter_set.of(x.identified.caller.groups)
    blocking, failed, _ = await judge(filter_set, filters, x.call.body, ports.detectors)
    x.rule_events += [_event(each, "failed") for each in failed]
    if blocking is not None:
        x.rule_events.append(_event(blocking, "matched"))
        return Refuse(ContentFilterViolation(filter_id=blocking.id))
    if failed and ports.dlp.fail_mode == "closed":
        raise DlpUnavailable(headers={"Retry-After": "5"})
    return ALLOW


def instruct(x: Asked, ports: Ports) -> Verdict:
    """Puts the caller's instructions before the system prompt, in order."""
    filter_set = x.identified.policy.filters
    if filter_set.filters:
        own = instructions(filter_set.of(x.identified.caller.groups))
        if own:
            DIALECTS[x.call.dialect].instruct(x.call.body, "\n\n".join(own))
    return ALLOW


def instructions(filters: Sequence[Filter]) -> list[str]:
    return [each.instruction for each in filters if each.instruction]


async def judge(
    filter_set: FilterSet, filters: Sequence[Filter], body: dict[str, Any], detectors: Detectors
) -> Judgement:
    """`filters` are those of the set that hold for the caller, in order."""
    worded = await _first_with_keyword(filter_set, filters, body)
    before = filters if worded is None else filters[: filters.index(worded)]
    topical = [each for each in before if each.topics]
    try:
        return Judgement(await _first_with_topic(topical, body, detectors) or worded)
    except TierFailed as failed:
        return Judgement(worded, topical, failed.reason)


async def _first_with_keyword(filter_set: FilterSet, filters: Sequence[Filter], body: dict[str, Any]) -> Filter | None:
    words = filter_set.keywords
    if words is None:
        return None
    found: list[bytes] = []
    for passage in _passages(body, words.longest):
        if words.within(passage):
            found.append(passage)
        if len(passage) > SLICE // 2:
            # Long texts let everybody else have a turn.
            await asyncio.sleep(0)
    if not found:
        return None
    return next((each for each in filters if each.keywords and each.keywords.found(found)), None)


def _passages(body: dict[str, Any], longest: int) -> Iterator[bytes]:
    texts = [slot for slot in slots(body) if isinstance(slot, Slot)]
    plain = [slot for slot in texts if not slot.json_text]
    gaps = [*(gap(slot, following) for slot, following in pairwise(plain)), ""]
    text = "".join(f"{slot.text}{between}" for slot, between in zip(plain, gaps, strict=False))
    as_json = (passages(slot.text, longest, json_escapes=True) for slot in texts if slot.json_text)
    return chain(passages(text, longest), *as_json)


async def _first_with_topic(filters: Sequence[Filter], body: dict[str, Any], detectors: Detectors) -> Filter | None:
    """Raises `TierFailed`."""
    said: dict[str, Any] = {name: body[name] for name in _CONVERSATION if name in body}
    texts = list(dict.fromkeys(slot.text for slot in slots(said) if isinstance(slot, Slot) and not slot.is_key))
    topics = list(dict.fromkeys(topic for each in filters for topic in each.topics))
    if not texts or not topics:
        return None
    scores = await detectors.semantic(texts, topics)
    highest = {topic: max(told.get(topic, 0.0) for told in scores) for topic in topics}
    return next((each for each in filters if any(highest[t] >= each.threshold for t in each.topics)), None)


def _event(each: Filter, result: str) -> RuleEvent:
    return RuleEvent(
        kind="content_filter", rule_id=each.id, rule_name=each.name, action=each.filter_type, result=result
    )
