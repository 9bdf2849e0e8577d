"""Inspecting a whole body: a request's on its way in, an answer's on its way out."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, zip_longest
from typing import Any, Final, NamedTuple

from gatehouse.detection.as_written import Part
from gatehouse.detection.documents.output import Unread
from gatehouse.detection.findings import Finding, keep
from gatehouse.detection.findings import Found as ByPlace
from gatehouse.detection.separator import BETWEEN_TEXTS
from gatehouse.engine.conversation.following import following, following_in_answer
from gatehouse.engine.conversation.slots import Slot, Unseen, replace_texts, slots_in_steps
from gatehouse.engine.conversation.uninspected import IN_ANSWERS
from gatehouse.engine.dlp.attachments import read_files
from gatehouse.engine.dlp.channel import Channel
from gatehouse.engine.dlp.decide import (
    MIN_EXTRACT_LENGTH,
    MIN_SEALED_LENGTH,
    NO_HITS,
    Decision,
    Edit,
    Hit,
    SplitValue,
    TierFindings,
)
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner, shifted
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_text import fit_to_json_in_steps, fit_whole_json, is_json_in_steps
from gatehouse.engine.dlp.spread import find_split_values
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.foundation.errors import Refusal

#: Between two parts of one message, which a model reads as one text: a value goes across it as across a line's end.
_SEAM: Final = "\n"
#: A longer part is no value and nothing else.
_LONGEST_VALUE: Final = 64
#: What may stand around a value that is all of a part.
_MARKS: Final = " \t\r\n\"',;."


async def inspect_request(
    body: dict[str, Any], examiner: Examiner, headers: dict[str, Any] | None = None, size: int = 0
) -> Hit | None:
    """Redacts in place, also in `headers` that go on with the body. The hit that a person has to decide about, if so.
    Raises a `Refusal` that blocks. `size` is the body's, in bytes.

    All texts are decided about together: what a later message holds counts for an earlier one's prompt.
    """
    joined = await _read(body, headers, examiner, size)
    if joined is None or not joined.texts:
        return None
    found, split_values = await _found(joined, examiner)
    if over := await _spread(body, joined, [*found.patterns, *_pieces(split_values)], size, examiner):
        found = found._replace(patterns=_without_beginnings(found.patterns, over))
        split_values += over
    if not split_values and not any(found):
        return None
    decision = await examiner.run_steps(
        joined.bases[-1], _decided(joined, found, split_values, examiner), fallback=NO_HITS
    )
    if decision.effect == "block":
        raise _blocked(decision.decisive, examiner, _slot(joined, decision.decisive))
    return decision.decisive if decision.effect == "prompt" else None


async def inspect_answer(
    body: dict[str, Any], examiner: Examiner, size: int = 0
) -> tuple[list[tuple[Slot, Channel]], Hit | None]:
    """The texts that are to be replaced once nothing speaks against it (`write`), and the hit that a person has to
    decide about. Each text is decided about by itself, as it is in a stream: a value that is spread over parts is one
    finding in each. Raises a `Refusal` that blocks. `size` is the body's, in bytes."""
    texts = await examiner.run_steps(size, _texts(body, examiner), fallback=[])
    found: dict[int, TierFindings] = {}
    # The texts of tools' arguments are JSON, and read as such.
    groups: dict[tuple[bool, bool], list[Slot]] = {}
    for slot in texts:
        groups.setdefault((slot.json_text, slot.is_sealed), []).append(slot)
    for (json_text, is_sealed), group in groups.items():
        of_group = await examiner.examine([slot.text for slot in group], json_text=json_text, is_sealed=is_sealed)
        for slot, of_text in zip(group, of_group, strict=True):
            found[id(slot)] = of_text
    known = ((number, each) for number, slot in enumerate(texts) for each in found[id(slot)].patterns)
    for value in await find_split_values(texts, following_in_answer(body), known, size, examiner):
        for number, start, end in value.pieces:
            before = found[id(texts[number])]
            patterns = [*before.patterns, _piece(value.finding, (start, end))]
            found[id(texts[number])] = before._replace(patterns=patterns)
    if not any(map(any, found.values())) and not examiner.inspection.labels.values:
        return [], None
    channels = await examiner.run_steps(size, _channels(texts, found, examiner), fallback=[])
    if channels and (stopped := channels[-1][1].blocking_hit) is not None:
        raise _blocked(stopped, examiner)
    return channels, next(
        (channel.pending_approval for _, channel in channels if channel.pending_approval is not None), None
    )


def _channels(
    texts: Sequence[Slot], found: Mapping[int, TierFindings], examiner: Examiner
) -> Steps[list[tuple[Slot, Channel]]]:
    """What becomes of each text, up to the first that must not go on."""
    channels: list[tuple[Slot, Channel]] = []
    for slot in texts:
        yield
        channel = Channel(examiner, json_text=slot.json_text, is_sealed=slot.is_sealed, scans=False)
        yield from channel.process_whole(slot.text, found[id(slot)])
        channels.append((slot, channel))
        if channel.blocking_hit is not None:
            break
    return channels


def write_texts(channels: Sequence[tuple[Slot, Channel]]) -> bool:
    """Puts what may go on into the body. Whether anything changed."""
    replacements: list[tuple[Slot, str]] = []
    for slot, channel in channels:
        if channel.pending_approval is not None:
            channel.approve()
        if channel.is_changed(0, channel.end):
            replacements.append((slot, channel.take(0, channel.end)))
    replace_texts(replacements)
    return bool(replacements)


def _slots(body: dict[str, Any], headers: dict[str, Any] | None) -> Steps[tuple[list[Any], bool]]:
    """Of a request, and whether they are texts that can be inspected as they stand."""
    found: list[Slot | Unseen] = []
    is_all_text = True
    for holder in (body, headers or {}):
        for slot in slots_in_steps(holder):
            yield
            if slot is None:
                continue
            found.append(slot)
            if slot.attachment is not None or isinstance(slot, Unseen):
                is_all_text = False
    return found, is_all_text


def _texts(body: dict[str, Any], examiner: Examiner) -> Steps[list[Slot]]:
    """Of an answer. Its files are not looked into."""
    texts: list[Slot] = []
    unread: list[Unread] = []
    for slot in slots_in_steps(body, answer=True):
        yield
        if isinstance(slot, Unseen):
            unread.append(Unread(slot.kind, "no_text"))
        elif slot is not None and slot.key not in IN_ANSWERS:
            texts.append(slot)
    _cannot_read(unread, examiner)
    return texts


async def _read(
    body: dict[str, Any], headers: dict[str, Any] | None, examiner: Examiner, size: int
) -> "_Joined | None":
    """All texts of a request, also those that files hold; None where the budget is spent. Raises a `Refusal` where one
    cannot be read, and that blocks."""
    found, joined = await examiner.run_steps(size, _slots_joined(body, headers, examiner), fallback=([], None))
    if joined is not None or not found:
        return joined
    read = await read_files(found, size, examiner)
    _cannot_read(read.unread, examiner)
    return await examiner.run_steps(size, _joined(read.texts, examiner), fallback=None)


def _slots_joined(
    body: dict[str, Any], headers: dict[str, Any] | None, examiner: Examiner
) -> "Steps[tuple[list[Any], _Joined | None]]":
    """What a request holds, joined where all of it is text that can be inspected as it stands."""
    found, is_all_text = yield from _slots(body, headers)
    return found, (yield from _joined(found, examiner)) if is_all_text else None


def _cannot_read(unread: Sequence[Unread], examiner: Examiner) -> None:
    blocked = examiner.options.unreadable == "block" or examiner.inspection.policy.blocks_unreadable
    counted = Counter(unread)
    for each, count in counted.items():
        examiner.inspection.note_unread(each, blocked=blocked, direction=examiner.direction, count=count)
    if blocked and unread:
        examiner.inspection.note_action("BLOCK")
        what = ", ".join(f"{each.kind}: {each.reason}" for each in counted)
        message = f"The content holds something that cannot be inspected ({what}), and is blocked therefore."
        raise violation(None, "BLOCK", examiner.options.block_status, message)


def _slot(joined: "_Joined", hit: Hit | None) -> Slot | None:
    """The text that a hit lies in."""
    return None if hit is None else joined.texts[bisect_right(joined.bases, hit.finding.start) - 1]


def _blocked(hit: Hit | None, examiner: Examiner, slot: Slot | None = None) -> Refusal:
    examiner.inspection.note_action("BLOCK")
    message = None
    if hit is not None and slot is not None and slot.is_extract:
        message = (
            f"The content was blocked by a data-loss prevention rule ({hit.rule.name}): it is in a document, where it"
            " cannot be redacted."
        )
    return violation(hit, "BLOCK", examiner.options.block_status, message)


def separator_between(slot: Slot, following: Slot) -> str:
    """What stands between two texts of a body where they are read as one."""
    return _SEAM if slot.key == following.key == "text" and slot.holder is not following.holder else BETWEEN_TEXTS


class _Joined(NamedTuple):
    """All texts as one: a body of many small texts would pay for the start of a scan each time."""

    texts: list[Slot]
    #: where they begin, and the end
    bases: list[int]
    #: texts that are JSON are blanks here, and read apart from the others
    text: str
    #: from where to where the others go
    parts: list[Part]
    #: where texts that are JSON begin, and they
    json_texts: list[tuple[int, str]]
    #: the same of those that a model could read
    readable: list[tuple[int, str]]
    #: the same of parts that may be a value and nothing else, which cannot be seen where they stand as lines
    short_parts: list[tuple[int, str]]


def _joined(texts: list[Slot], examiner: Examiner) -> Steps[_Joined]:
    joined = _Joined(texts, [0], "", [], [], [], [])
    pieces: list[str] = []
    place = 0
    between = BETWEEN_TEXTS
    for slot, next_slot in zip_longest(texts, islice(texts, 1, None)):
        yield
        text = slot.text
        # Also where nothing is redacted here: something of the answer may be.
        examiner.inspection.labels.reserve_labels_in(text)
        if slot.json_text:
            joined.json_texts.append((place, text))
        elif text:
            joined.parts.append((place, place + len(text)))
        if not slot.is_sealed:
            joined.readable.append((place, text))
        before, between = between, BETWEEN_TEXTS if next_slot is None else separator_between(slot, next_slot)
        if _SEAM in {before, between} and len(text) <= _LONGEST_VALUE and any(map(str.isdecimal, text)):
            joined.short_parts.append((place, text))
        pieces += (" " * len(text) if slot.json_text else text, between)
        place += len(text) + len(between)
        joined.bases.append(place)
    return joined._replace(text="".join(pieces))


async def _found(joined: _Joined, examiner: Examiner) -> tuple[TierFindings, list[SplitValue]]:
    """Everything found in each text, and over parts of a message, placed in the joined text."""
    policy, size = examiner.inspection.policy, len(joined.text)
    of_all = await examiner.find_patterns(joined.text, parts=joined.parts)
    patterns: list[Finding] = []
    split_values: list[SplitValue] = []
    if of_all:
        patterns, split_values = await examiner.run_steps(
            size, _within(of_all, joined), fallback=(patterns, split_values)
        )
    if joined.short_parts:
        text = BETWEEN_TEXTS.join(["", *(text for _, text in joined.short_parts), ""])
        of_parts = await examiner.find_patterns(text, parts=(), decoded=False)
        patterns = await examiner.run_steps(len(text), _with_parts(patterns, of_parts, joined), fallback=patterns)
    if joined.json_texts:
        of_each = await examiner.find_patterns_in_texts([text for _, text in joined.json_texts], json_text=True)
        patterns += await examiner.run_steps(size, _placed(joined.json_texts, of_each), fallback=[])
    if not policy.entities and not policy.labels:
        return TierFindings(patterns), split_values
    texts = [text for _, text in joined.readable]
    entities = await examiner.find_entities(texts) if policy.entities else []
    labels = await examiner.find_labels(texts) if policy.labels else []
    placed = [
        await examiner.run_steps(size, _placed(joined.readable, tier), fallback=[]) if tier else []
        for tier in (entities, labels)
    ]
    return TierFindings(patterns, *placed), split_values


def _with_parts(known: Iterable[Finding], of_parts: Iterable[Finding], joined: _Joined) -> Steps[list[Finding]]:
    """What is `known`, and what is all of one of the short parts, but for marks. `of_parts` counts in these joined."""
    found: ByPlace = {}
    for finding in known:
        yield
        keep(found, (finding,))
    lengths = (len(text) + len(BETWEEN_TEXTS) for _, text in joined.short_parts)
    bases = list(accumulate(lengths, initial=len(BETWEEN_TEXTS)))
    for finding in of_parts:
        yield
        number = bisect_right(bases, finding.start) - 1
        place, text = joined.short_parts[number]
        start, end = finding.start - bases[number], finding.end - bases[number]
        if text[start:end].strip(_MARKS) == text.strip(_MARKS):
            keep(found, shifted([finding], place - bases[number]))
    return list(found.values())


def _placed(texts: Sequence[tuple[int, str]], found: Sequence[Sequence[Finding]]) -> Steps[list[Finding]]:
    """What was found in texts, by where these begin."""
    placed: list[Finding] = []
    for (base, _), findings in zip(texts, found, strict=True):
        yield
        placed += shifted(findings, base)
    return placed


async def _spread(
    body: dict[str, Any], joined: _Joined, known: Sequence[Finding], size: int, examiner: Examiner
) -> list[SplitValue]:
    """Values that go from one text over into the next ones of the same speaker, placed in the joined text, as what is
    `known` is."""
    texts, bases = joined.texts, joined.bases
    numbers = (bisect_right(bases, finding.start) - 1 for finding in known)
    within = ((number, shifted([each], -bases[number])[0]) for number, each in zip(numbers, known, strict=True))
    values = await find_split_values(texts, following(body), within, max(size, bases[-1]), examiner)
    split_values: list[SplitValue] = []
    for finding, pieces, text in values:
        places = tuple((bases[number] + start, bases[number] + end) for number, start, end in pieces)
        split_values.append(SplitValue(_piece(finding, places[0]), places, text))
    return split_values


def _pieces(split_values: Iterable[SplitValue]) -> Iterator[Finding]:
    return (_piece(each.finding, piece) for each in split_values for piece in each.pieces)


def _without_beginnings(found: Sequence[Finding], split_values: Sequence[SplitValue]) -> list[Finding]:
    """What is not only the beginning of a value that goes on in the next text, and scores no higher."""
    scores = {(each.finding.source, each.finding.start): each.finding.score for each in split_values}
    return [each for each in found if each.score > scores.get((each.source, each.start), -1.0)]


def _decided(
    joined: _Joined, found: TierFindings, split_values: Sequence[SplitValue], examiner: Examiner
) -> Steps[Decision]:
    """Redacted, where nothing stands against it."""

    def min_length(finding: Finding) -> int | None:
        slot = joined.texts[bisect_right(joined.bases, finding.start) - 1]
        if slot.is_sealed:
            return MIN_SEALED_LENGTH
        return MIN_EXTRACT_LENGTH if slot.is_extract else None

    decision = yield from examiner.inspection.decide_in_steps(found, examiner.direction, min_length, split_values)
    if decision.edits and decision.effect not in {"block", "prompt"}:
        yield from _redact(joined.texts, joined.bases, decision, examiner)
    return decision


def _within(findings: list[Finding], joined: _Joined) -> Steps[tuple[list[Finding], list[SplitValue]]]:
    """What matches in one text, and what matches over several."""
    texts, bases = joined.texts, joined.bases
    within: list[Finding] = []
    split_values: list[SplitValue] = []
    for f in findings:
        yield
        first, last = bisect_right(bases, f.start) - 1, bisect_right(bases, f.end - 1) - 1
        if first == last and f.end <= bases[first] + len(texts[first].text):
            within.append(f)
            continue
        pieces = []
        for n in range(first, last + 1):
            start, end = max(f.start, bases[n]), min(f.end, bases[n] + len(texts[n].text))
            if start < end:
                pieces.append((start, end))
        if len(pieces) == 1:
            within.append(_piece(f, pieces[0]))
        elif pieces:
            split_values.append(SplitValue(_piece(f, pieces[0]), tuple(pieces), joined.text[f.start : f.end]))
    return within, split_values


def _piece(finding: Finding, piece: tuple[int, int]) -> Finding:
    return Finding(*piece, finding.entity_type, finding.score, finding.source)


def _redact(texts: Sequence[Slot], bases: Sequence[int], decision: Decision, examiner: Examiner) -> Steps[None]:
    """Edits of different texts never overlap, so each lies in one."""
    of_text: dict[int, list[Edit]] = {}
    for edit in decision.edits:
        of_text.setdefault(bisect_right(bases, edit.start) - 1, []).append(edit)
    replacements: list[tuple[Slot, str]] = []
    for n, edits in of_text.items():
        yield
        labels = examiner.inspection.replacements(edits, texts[n].text, bases[n])
        text = yield from apply_replacements_in_steps(texts[n], labels, bases[n])
        replacements.append((texts[n], text))
    replace_texts(replacements)


def apply_replacements(slot: Slot, replacements: Sequence[Replacement], offset: int = 0) -> str:
    """The slot's text with what replaces parts of it, whose places count from `offset`."""
    return finish(apply_replacements_in_steps(slot, replacements, offset))


def apply_replacements_in_steps(slot: Slot, replacements: Sequence[Replacement], offset: int = 0) -> Steps[str]:
    """The same of a text of any length."""
    text = slot.text
    changes = [Replacement(change.start - offset, change.end - offset, change.text) for change in replacements]
    is_json = yield from is_json_in_steps(text)
    if is_json:
        changes = yield from fit_whole_json(changes, text)
    elif slot.json_text:
        changes = yield from fit_to_json_in_steps(changes, text)
    place = 0
    pieces: list[str] = []
    for change in changes:
        pieces += (text[place : change.start], change.text)
        place = change.end
    return "".join([*pieces, text[place:]])
