"""Inspecting a whole body: a request's on its way in, an answer's on its way out."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from gatehouse.detection.findings import Finding
from gatehouse.detection.normalise import SEPARATOR
from gatehouse.engine.conversation.slots import Slot, Unseen, slots
from gatehouse.engine.dlp.aside import GivenUp, beside
from gatehouse.engine.dlp.channel import Channel
from gatehouse.engine.dlp.decide import Decision, Edit, Found, Hit
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner, shifted
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_text import JsonCursor, fitted
from gatehouse.foundation.errors import Refusal

#: Between two parts of one message, which a model reads as one text: a value goes across it as across a line's end.
_SEAM: Final = "\n"
#: Of an answer: what the provider calls it and its calls, made up by the provider.
_PROVIDERS_OWN: Final = frozenset({"id", "call_id", "system_fingerprint"})


async def inspect_request(
    body: dict[str, Any], examiner: Examiner, headers: dict[str, Any] | None = None, size: int = 0
) -> Hit | None:
    """Redacts in place, also in `headers` that go on with the body. The hit that a person has to decide about, if so.
    Raises a `Refusal` that blocks. `size` is the body's, in bytes.

    All texts are decided about together: what a later message holds counts for an earlier one's prompt.
    """
    joined = await beside(size, lambda _: _joined(body, headers, examiner))
    if not joined.texts:
        return None
    found = await _found(joined, examiner)
    decision = await beside(joined.bases[-1], lambda _: _decided(joined, found, examiner))
    if decision.effect == "block":
        raise _blocked(decision.decisive, examiner)
    return decision.decisive if decision.effect == "prompt" else None


async def inspect_answer(body: dict[str, Any], examiner: Examiner) -> tuple[list[tuple[Slot, Channel]], Hit | None]:
    """The texts that are to be replaced once nothing speaks against it (`write`), and the hit that a person has to
    decide about. Each text is decided about by itself, as it is in a stream. Raises a `Refusal` that blocks."""
    texts = [slot for slot in _texts(body, examiner) if slot.key not in _PROVIDERS_OWN]
    # The texts of tools' arguments are JSON, and read as such.
    plain = [slot for slot in texts if not slot.json_text]
    as_json = [slot for slot in texts if slot.json_text]
    found: dict[int, Found] = {}
    for group, json_text in ((plain, False), (as_json, True)):
        if group:
            told = await examiner.whole([slot.text for slot in group], json_text=json_text)
            found |= {id(slot): each for slot, each in zip(group, told, strict=True)}
    channels: list[tuple[Slot, Channel]] = []
    asks: Hit | None = None
    if not any(map(any, found.values())) and not examiner.inspection.labels.values:
        return channels, asks
    for slot in texts:
        channel = Channel(examiner, json_text=slot.json_text)
        await beside(len(slot.text), partial(_whole, channel, slot.text, found[id(slot)]))
        if channel.stopped is not None:
            raise _blocked(channel.stopped, examiner)
        asks = asks or channel.asks
        channels.append((slot, channel))
    return channels, asks


def _whole(channel: Channel, text: str, found: Found, _: GivenUp) -> None:
    channel.whole(text, found)


def write(channels: Sequence[tuple[Slot, Channel]]) -> bool:
    """Puts what may go on into the body. Whether anything changed."""
    changed = False
    # From the end: a field's name stands before its value, which is found by that name.
    for slot, channel in reversed(channels):
        if channel.asks is not None:
            channel.go_on()
        if channel.changed(0, channel.end):
            slot.replace(channel.take(0, channel.end))
            changed = True
    return changed


def _texts(body: dict[str, Any], examiner: Examiner) -> list[Slot]:
    texts: list[Slot] = []
    for slot in slots(body):
        if isinstance(slot, Slot):
            texts.append(slot)
        else:
            _cannot_see(slot, examiner)
    return texts


def _cannot_see(unseen: Unseen, examiner: Examiner) -> None:
    blocked = examiner.options.uninspectable == "block"
    examiner.inspection.note_unseen(unseen.kind, blocked=blocked, direction=examiner.direction)
    if blocked:
        examiner.inspection.did("BLOCK")
        message = f"The content holds something that cannot be inspected ({unseen.kind}), and is blocked therefore."
        raise violation(None, "BLOCK", examiner.options.block_status, message)


def _blocked(hit: Hit | None, examiner: Examiner) -> Refusal:
    examiner.inspection.did("BLOCK")
    return violation(hit, "BLOCK", examiner.options.block_status)


def gap(slot: Slot, following: Slot) -> str:
    """What stands between two texts of a body where they are read as one."""
    return _SEAM if slot.key == following.key == "text" and slot.holder is not following.holder else SEPARATOR


class _Joined(NamedTuple):
    """All texts as one: a body of many small texts would pay for the start of a scan each time."""

    texts: list[Slot]
    #: where they begin, and the end
    bases: list[int]
    #: texts that are JSON are blanks here, and read apart from the others
    text: str


def _joined(body: dict[str, Any], headers: dict[str, Any] | None, examiner: Examiner) -> _Joined:
    texts = _texts(body, examiner)
    if headers:
        texts += _texts(headers, examiner)
    for slot in texts:
        # Also where nothing is redacted here: something of the answer may be.
        examiner.inspection.labels.leave_out(slot.text)
    behind = [*(gap(slot, following) for slot, following in pairwise(texts)), SEPARATOR]
    pieces = [
        (" " * len(slot.text) if slot.json_text else slot.text) + gap for slot, gap in zip(texts, behind, strict=False)
    ]
    return _Joined(texts, [0, *accumulate(map(len, pieces))], "".join(pieces))


async def _found(joined: _Joined, examiner: Examiner) -> Found:
    """Everything found, placed in the joined text."""
    policy, texts, bases = examiner.inspection.policy, joined.texts, joined.bases
    of_all = await examiner.patterns(joined.text)
    patterns = await beside(len(joined.text), lambda _: _within(of_all, texts, bases)) if of_all else []
    for base, slot in zip(bases, texts, strict=False):
        if slot.json_text:
            patterns += shifted(await examiner.patterns(slot.text, json_text=True), base)
    if not policy.entities and not policy.labels:
        return Found(patterns)
    whole = [slot.text for slot in texts]
    entities = [await examiner.entities_of(whole), await examiner.labels_of(whole)]
    placed = (
        [finding for base, each in zip(bases, tier, strict=False) for finding in shifted(each, base)]
        for tier in entities
    )
    return Found(patterns, *placed)


def _decided(joined: _Joined, found: Found, examiner: Examiner) -> Decision:
    """Redacted, where nothing stands against it."""
    decision = examiner.inspection.decide(found, examiner.direction)
    if decision.edits and decision.effect not in {"block", "prompt"}:
        _redact(joined.texts, joined.bases, decision, examiner)
    return decision


def _within(findings: list[Finding], texts: Sequence[Slot], bases: Sequence[int]) -> list[Finding]:
    """What matches across two texts is cut between them."""
    cut: list[Finding] = []
    for f in findings:
        first, last = bisect_right(bases, f.start) - 1, bisect_right(bases, f.end - 1) - 1
        if first == last and f.end <= bases[first] + len(texts[first].text):
            cut.append(f)
            continue
        for n in range(first, last + 1):
            start, end = max(f.start, bases[n]), min(f.end, bases[n] + len(texts[n].text))
            if start < end:
                cut.append(Finding(start, end, f.entity_type, f.score, f.source))
    return cut


def _redact(texts: Sequence[Slot], bases: Sequence[int], decision: Decision, examiner: Examiner) -> None:
    """Edits of different texts never overlap, so each lies in one."""
    of_text: dict[int, list[Edit]] = {}
    for edit in decision.edits:
        of_text.setdefault(bisect_right(bases, edit.start) - 1, []).append(edit)
    changed = [
        (texts[n], replaced(texts[n], examiner.inspection.replacements(edits, texts[n].text, bases[n]), bases[n]))
        for n, edits in of_text.items()
    ]
    # From the end: a field's name stands before its value, which is found by that name.
    for slot, text in reversed(changed):
        slot.replace(text)


def replaced(slot: Slot, replacements: Sequence[Replacement], offset: int = 0) -> str:
    """The slot's text with what replaces parts of it, whose places count from `offset`."""
    text = slot.text
    changes = [Replacement(change.start - offset, change.end - offset, change.text) for change in replacements]
    if slot.json_text:
        changes = fitted(changes, text, JsonCursor())
    place = 0
    pieces: list[str] = []
    for change in changes:
        pieces += (text[place : change.start], change.text)
        place = change.end
    return "".join([*pieces, text[place:]])
