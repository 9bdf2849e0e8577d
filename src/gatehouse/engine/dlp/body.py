"""Inspects the whole bodies of requests and answers."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, zip_longest
from typing import Any, Final, NamedTuple

from gatehouse.detection.documents.output import Unread
from gatehouse.detection.findings import Finding, FindingsByPlace, keep_best
from gatehouse.detection.search.as_written import Part
from gatehouse.detection.separator import BETWEEN_TEXTS
from gatehouse.engine.conversation.following import consecutive_texts, consecutive_texts_of_answer
from gatehouse.engine.conversation.slots import NonText, Slot, replace_texts, slots_in_steps
from gatehouse.engine.conversation.uninspected import IN_ANSWERS
from gatehouse.engine.dlp.attachments import read_files
from gatehouse.engine.dlp.decide import (
    MIN_EXTRACT_CHARACTERS,
    MIN_SEALED_CHARACTERS,
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
from gatehouse.engine.dlp.json_texts.replacement import fit_to_json_in_steps, fit_whole_json, is_json_in_steps
from gatehouse.engine.dlp.split_values.search import find_split_values
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.engine.dlp.streams.channel import Channel
from gatehouse.foundation.errors import Refusal

#: Separates two parts of one message, which a model reads as one text. A value may cross the separator, as it may cross
#: the end of a line.
_PART_SEPARATOR: Final = "\n"
#: Maximum length of a part that may consist of nothing but a value.
_MAX_VALUE_CHARACTERS: Final = 64
#: Characters that may surround the value in such a part.
_SURROUNDING_MARKS: Final = " \t\r\n\"',;."


async def inspect_request(
    body: dict[str, Any], examiner: Examiner, headers: dict[str, Any] | None = None, size: int = 0
) -> Hit | None:
    """Redact the body, and the `headers` sent with it, in place. Returns the hit that needs approval, if any. Raises a
    `Refusal` if a rule blocks. `size` is the size of the body in bytes.

    All texts of the request share one decision, so an effect in a later message also applies to an earlier one.
    """
    joined = await _join_request(body, headers, examiner, size)
    if joined is None or not joined.texts:
        return None
    findings, split_values = await _find(joined, examiner)
    if split_over_texts := await _find_split(
        body, joined, [*findings.patterns, *_piece_findings(split_values)], size, examiner
    ):
        findings = findings._replace(patterns=_drop_beginnings(findings.patterns, split_over_texts))
        split_values += split_over_texts
    if not split_values and not any(findings):
        return None
    decision = await examiner.run_steps(
        joined.bases[-1], _decide(joined, findings, split_values, examiner), fallback=NO_HITS
    )
    if decision.effect == "block":
        raise _violation(decision.decisive, examiner, _slot_of(joined, decision.decisive))
    return decision.decisive if decision.effect == "prompt" else None


async def inspect_answer(
    body: dict[str, Any], examiner: Examiner, size: int = 0, *, exempt: frozenset[str] = IN_ANSWERS
) -> tuple[list[tuple[Slot, Channel]], Hit | None]:
    """Return the texts to write with `write_texts` after any approval, and the hit that needs approval. Each text has
    its own decision, as in a stream, so a value split over several parts is one finding in each of them. Raises a
    `Refusal` if a rule blocks. `size` is the size of the body in bytes. Fields in `exempt` are not inspected."""
    texts = await examiner.run_steps(size, _answer_texts(body, examiner, exempt), fallback=[])
    findings_by_slot: dict[int, TierFindings] = {}
    # Texts that are arguments of tools are searched as JSON, so they are examined in groups of their own.
    groups: dict[tuple[bool, bool], list[Slot]] = {}
    for slot in texts:
        groups.setdefault((slot.json_text, slot.is_sealed), []).append(slot)
    for (json_text, is_sealed), group in groups.items():
        group_findings = await examiner.examine([slot.text for slot in group], json_text=json_text, is_sealed=is_sealed)
        for slot, text_findings in zip(group, group_findings, strict=True):
            findings_by_slot[id(slot)] = text_findings
    numbered_findings = (
        (number, finding) for number, slot in enumerate(texts) for finding in findings_by_slot[id(slot)].patterns
    )
    for value in await find_split_values(texts, consecutive_texts_of_answer(body), numbered_findings, size, examiner):
        for number, start, end in value.pieces:
            single_text_findings = findings_by_slot[id(texts[number])]
            patterns = [*single_text_findings.patterns, _piece(value.finding, (start, end))]
            findings_by_slot[id(texts[number])] = single_text_findings._replace(patterns=patterns)
    if not any(map(any, findings_by_slot.values())) and not examiner.inspection.labels.originals_by_label:
        return [], None
    channels = await examiner.run_steps(size, _inspect_texts(texts, findings_by_slot, examiner), fallback=[])
    if channels and (blocking_hit := channels[-1][1].blocking_hit) is not None:
        raise _violation(blocking_hit, examiner)
    return channels, next(
        (channel.pending_approval for _, channel in channels if channel.pending_approval is not None), None
    )


def _inspect_texts(
    texts: Sequence[Slot], findings_by_slot: Mapping[int, TierFindings], examiner: Examiner
) -> Steps[list[tuple[Slot, Channel]]]:
    """Return the channels of the texts, up to and including the first text that a rule blocks."""
    channels: list[tuple[Slot, Channel]] = []
    for slot in texts:
        yield
        channel = Channel(examiner, json_text=slot.json_text, is_sealed=slot.is_sealed, scans=False)
        yield from channel.process_whole(slot.text, findings_by_slot[id(slot)])
        channels.append((slot, channel))
        if channel.blocking_hit is not None:
            break
    return channels


def write_texts(channels: Sequence[tuple[Slot, Channel]]) -> bool:
    """Write the released texts into the body. Returns whether a text changed."""
    replacements: list[tuple[Slot, str]] = []
    for slot, channel in channels:
        if channel.pending_approval is not None:
            channel.approve()
        if channel.is_changed(0, channel.end):
            replacements.append((slot, channel.take(0, channel.end)))
    replace_texts(replacements)
    return bool(replacements)


def _request_slots(body: dict[str, Any], headers: dict[str, Any] | None) -> Steps[tuple[list[Any], bool]]:
    """Return the slots of a request, and whether all of them are texts that can be inspected directly."""
    slots: list[Slot | NonText] = []
    is_all_text = True
    for holder in (body, headers or {}):
        for slot in slots_in_steps(holder):
            yield
            if slot is None:
                continue
            slots.append(slot)
            if slot.attachment is not None or isinstance(slot, NonText):
                is_all_text = False
    return slots, is_all_text


def _answer_texts(body: dict[str, Any], examiner: Examiner, exempt: frozenset[str]) -> Steps[list[Slot]]:
    """Return the texts of an answer. Files in the answer are not inspected."""
    texts: list[Slot] = []
    unread: list[Unread] = []
    for slot in slots_in_steps(body, answer=True):
        yield
        if isinstance(slot, NonText):
            unread.append(Unread(slot.kind, "no_text"))
        elif slot is not None and slot.key not in exempt:
            texts.append(slot)
    note_unread(unread, examiner)
    return texts


async def _join_request(
    body: dict[str, Any], headers: dict[str, Any] | None, examiner: Examiner, size: int
) -> "_JoinedTexts | None":
    """Return all texts of a request, including those in files, or None if the request's budget is spent. Raises a
    `Refusal` if unreadable content is blocked."""
    slots, joined = await examiner.run_steps(size, _slots_joined(body, headers, examiner), fallback=([], None))
    if joined is not None or not slots:
        return joined
    texts_of_request = await read_files(slots, size, examiner)
    note_unread(texts_of_request.unread, examiner)
    return await examiner.run_steps(size, _join_texts(texts_of_request.texts, examiner), fallback=None)


def _slots_joined(
    body: dict[str, Any], headers: dict[str, Any] | None, examiner: Examiner
) -> "Steps[tuple[list[Any], _JoinedTexts | None]]":
    """Return the slots of a request, and their joined texts if all slots are texts that can be inspected directly."""
    slots, is_all_text = yield from _request_slots(body, headers)
    return slots, (yield from _join_texts(slots, examiner)) if is_all_text else None


def note_unread(unread: Sequence[Unread], examiner: Examiner) -> None:
    blocked = examiner.options.unreadable == "block" or examiner.inspection.policy.blocks_unreadable
    counts = Counter(unread)
    for item, count in counts.items():
        examiner.inspection.note_unread(item, blocked=blocked, direction=examiner.direction, count=count)
    if blocked and unread:
        examiner.inspection.note_action("BLOCK")
        summary = ", ".join(f"{item.kind}: {item.reason}" for item in counts)
        message = f"The content was blocked because a part of it cannot be inspected ({summary})."
        raise violation(None, "BLOCK", examiner.options.block_status, message)


def _slot_of(joined: "_JoinedTexts", hit: Hit | None) -> Slot | None:
    """Return the text that contains the hit."""
    return None if hit is None else joined.texts[bisect_right(joined.bases, hit.finding.start) - 1]


def _violation(hit: Hit | None, examiner: Examiner, slot: Slot | None = None) -> Refusal:
    examiner.inspection.note_action("BLOCK")
    message = None
    if hit is not None and slot is not None and slot.is_extract:
        message = (
            f"The content was blocked by a data-loss prevention rule ({hit.rule.name}): it is in a document, where it"
            " cannot be redacted."
        )
    return violation(hit, "BLOCK", examiner.options.block_status, message)


def separator_between(slot: Slot, following: Slot) -> str:
    """Return the separator to put between two consecutive texts when they are joined."""
    return (
        _PART_SEPARATOR
        if slot.key == following.key == "text" and slot.holder is not following.holder
        else BETWEEN_TEXTS
    )


class _JoinedTexts(NamedTuple):
    """All texts of a request, joined into one text because each scan has a fixed cost."""

    texts: list[Slot]
    #: the start of each text, and the end of the last
    bases: list[int]
    #: the joined text; JSON texts are blank in it, and are searched separately
    text: str
    #: start and end of each text that is not JSON
    parts: list[Part]
    #: the start of each JSON text, and the text
    json_texts: list[tuple[int, str]]
    #: the start and text of each text that the model tiers read
    readable: list[tuple[int, str]]
    #: the start and text of each part that may consist of nothing but a value; the search misses such a value in joined
    #: lines
    short_parts: list[tuple[int, str]]


def _join_texts(texts: list[Slot], examiner: Examiner) -> Steps[_JoinedTexts]:
    joined = _JoinedTexts(texts, [0], "", [], [], [], [])
    pieces: list[str] = []
    position = 0
    separator = BETWEEN_TEXTS
    for slot, next_slot in zip_longest(texts, islice(texts, 1, None)):
        yield
        text = slot.text
        # Reserved even if nothing is redacted in the request, because text of the answer may be redacted.
        examiner.inspection.labels.reserve_labels_in(text)
        if slot.json_text:
            joined.json_texts.append((position, text))
        elif text:
            joined.parts.append((position, position + len(text)))
        if not slot.is_sealed:
            joined.readable.append((position, text))
        previous, separator = separator, BETWEEN_TEXTS if next_slot is None else separator_between(slot, next_slot)
        if (
            _PART_SEPARATOR in {previous, separator}
            and len(text) <= _MAX_VALUE_CHARACTERS
            and any(map(str.isdecimal, text))
        ):
            joined.short_parts.append((position, text))
        pieces += (" " * len(text) if slot.json_text else text, separator)
        position += len(text) + len(separator)
        joined.bases.append(position)
    return joined._replace(text="".join(pieces))


async def _find(joined: _JoinedTexts, examiner: Examiner) -> tuple[TierFindings, list[SplitValue]]:
    """Return the findings in each text, and the values split over parts of a message, with positions in the joined
    text."""
    policy, size = examiner.inspection.policy, len(joined.text)
    joined_findings = await examiner.find_patterns(joined.text, parts=joined.parts)
    patterns: list[Finding] = []
    split_values: list[SplitValue] = []
    if joined_findings:
        patterns, split_values = await examiner.run_steps(
            size, _split_by_text(joined_findings, joined), fallback=(patterns, split_values)
        )
    if joined.short_parts:
        text = BETWEEN_TEXTS.join(["", *(text for _, text in joined.short_parts), ""])
        part_findings = await examiner.find_patterns(text, parts=(), decoded=False)
        patterns = await examiner.run_steps(
            len(text), _add_part_findings(patterns, part_findings, joined), fallback=patterns
        )
    if joined.json_texts:
        json_findings = await examiner.find_patterns_in_texts([text for _, text in joined.json_texts], json_text=True)
        patterns += await examiner.run_steps(size, _place_findings(joined.json_texts, json_findings), fallback=[])
    if not policy.entities and not policy.labels:
        return TierFindings(patterns), split_values
    texts = [text for _, text in joined.readable]
    entities = await examiner.find_entities(texts) if policy.entities else []
    labels = await examiner.find_labels(texts) if policy.labels else []
    placed = [
        await examiner.run_steps(size, _place_findings(joined.readable, tier), fallback=[]) if tier else []
        for tier in (entities, labels)
    ]
    return TierFindings(patterns, *placed), split_values


def _add_part_findings(
    findings: Iterable[Finding], part_findings: Iterable[Finding], joined: _JoinedTexts
) -> Steps[list[Finding]]:
    """Return `findings`, and those of `part_findings` that cover a short part except for its surrounding marks. The
    positions of `part_findings` are in the joined short parts."""
    findings_by_place: FindingsByPlace = {}
    for finding in findings:
        yield
        keep_best(findings_by_place, (finding,))
    lengths = (len(text) + len(BETWEEN_TEXTS) for _, text in joined.short_parts)
    bases = list(accumulate(lengths, initial=len(BETWEEN_TEXTS)))
    for finding in part_findings:
        yield
        number = bisect_right(bases, finding.start) - 1
        text_start, text = joined.short_parts[number]
        start, end = finding.start - bases[number], finding.end - bases[number]
        if text[start:end].strip(_SURROUNDING_MARKS) == text.strip(_SURROUNDING_MARKS):
            keep_best(findings_by_place, shifted([finding], text_start - bases[number]))
    return list(findings_by_place.values())


def _place_findings(
    texts: Sequence[tuple[int, str]], findings_by_text: Sequence[Sequence[Finding]]
) -> Steps[list[Finding]]:
    """Return the findings with positions in the joined text. `texts` are pairs of a text's start and the text."""
    placed: list[Finding] = []
    for (base, _), findings in zip(texts, findings_by_text, strict=True):
        yield
        placed += shifted(findings, base)
    return placed


async def _find_split(
    body: dict[str, Any], joined: _JoinedTexts, findings: Sequence[Finding], size: int, examiner: Examiner
) -> list[SplitValue]:
    """Return the values that are split over consecutive texts of one speaker. The positions of these values and of
    `findings` are in the joined text."""
    texts, bases = joined.texts, joined.bases
    numbers = (bisect_right(bases, finding.start) - 1 for finding in findings)
    numbered_findings = (
        (number, shifted([finding], -bases[number])[0]) for number, finding in zip(numbers, findings, strict=True)
    )
    values = await find_split_values(texts, consecutive_texts(body), numbered_findings, max(size, bases[-1]), examiner)
    split_values: list[SplitValue] = []
    for finding, pieces, text in values:
        ranges = tuple((bases[number] + start, bases[number] + end) for number, start, end in pieces)
        split_values.append(SplitValue(_piece(finding, ranges[0]), ranges, text))
    return split_values


def _piece_findings(split_values: Iterable[SplitValue]) -> Iterator[Finding]:
    return (_piece(value.finding, piece) for value in split_values for piece in value.pieces)


def _drop_beginnings(findings: Sequence[Finding], split_values: Sequence[SplitValue]) -> list[Finding]:
    """Return the findings except those that are the beginning of a split value and have no higher score than that
    value."""
    scores = {(value.finding.source, value.finding.start): value.finding.score for value in split_values}
    return [finding for finding in findings if finding.score > scores.get((finding.source, finding.start), -1.0)]


def _decide(
    joined: _JoinedTexts, findings: TierFindings, split_values: Sequence[SplitValue], examiner: Examiner
) -> Steps[Decision]:
    """Return the decision about a request. Redacts its texts unless the decision is to block or to ask for approval."""

    def min_length(finding: Finding) -> int | None:
        slot = joined.texts[bisect_right(joined.bases, finding.start) - 1]
        if slot.is_sealed:
            return MIN_SEALED_CHARACTERS
        return MIN_EXTRACT_CHARACTERS if slot.is_extract else None

    decision = yield from examiner.inspection.decide_in_steps(findings, examiner.direction, min_length, split_values)
    if decision.edits and decision.effect not in {"block", "prompt"}:
        yield from _redact(joined.texts, joined.bases, decision, examiner)
    return decision


def _split_by_text(findings: list[Finding], joined: _JoinedTexts) -> Steps[tuple[list[Finding], list[SplitValue]]]:
    """Return the findings that lie in one text, and the values that are split over several texts."""
    texts, bases = joined.texts, joined.bases
    findings_in_texts: list[Finding] = []
    split_values: list[SplitValue] = []
    for finding in findings:
        yield
        first, last = bisect_right(bases, finding.start) - 1, bisect_right(bases, finding.end - 1) - 1
        if first == last and finding.end <= bases[first] + len(texts[first].text):
            findings_in_texts.append(finding)
            continue
        pieces = []
        for n in range(first, last + 1):
            start, end = max(finding.start, bases[n]), min(finding.end, bases[n] + len(texts[n].text))
            if start < end:
                pieces.append((start, end))
        if len(pieces) == 1:
            findings_in_texts.append(_piece(finding, pieces[0]))
        elif pieces:
            split_values.append(
                SplitValue(_piece(finding, pieces[0]), tuple(pieces), joined.text[finding.start : finding.end])
            )
    return findings_in_texts, split_values


def _piece(finding: Finding, piece: tuple[int, int]) -> Finding:
    return Finding(*piece, finding.entity_type, finding.score, finding.source)


def _redact(texts: Sequence[Slot], bases: Sequence[int], decision: Decision, examiner: Examiner) -> Steps[None]:
    """Redact the texts. Each edit lies in one text, because no edit crosses a border between texts."""
    edits_by_text: dict[int, list[Edit]] = {}
    for edit in decision.edits:
        edits_by_text.setdefault(bisect_right(bases, edit.start) - 1, []).append(edit)
    replacements: list[tuple[Slot, str]] = []
    for n, edits in edits_by_text.items():
        yield
        replacements_of_text = examiner.inspection.replacements(edits, texts[n].text, bases[n])
        text = yield from apply_replacements_in_steps(texts[n], replacements_of_text, bases[n])
        replacements.append((texts[n], text))
    replace_texts(replacements)


def apply_replacements(slot: Slot, replacements: Sequence[Replacement], offset: int = 0) -> str:
    """Return the text of the slot with the replacements applied. Their positions are relative to `offset`."""
    return finish(apply_replacements_in_steps(slot, replacements, offset))


def apply_replacements_in_steps(slot: Slot, replacements: Sequence[Replacement], offset: int = 0) -> Steps[str]:
    """Return the text of the slot with the replacements applied, in steps, for texts of any length."""
    text = slot.text
    changes = [Replacement(change.start - offset, change.end - offset, change.text) for change in replacements]
    is_json = yield from is_json_in_steps(text)
    if is_json:
        changes = yield from fit_whole_json(changes, text)
    elif slot.json_text:
        changes = yield from fit_to_json_in_steps(changes, text)
    position = 0
    pieces: list[str] = []
    for change in changes:
        pieces += (text[position : change.start], change.text)
        position = change.end
    return "".join([*pieces, text[position:]])
