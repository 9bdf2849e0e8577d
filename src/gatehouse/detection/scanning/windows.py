"""Scans a text that arrives in pieces, and computes the position up to which the text may be passed on.

`Scanner` returns the same findings regardless of how the text is cut. Three positions move forward through the text:

- The *settled* position: all matches that begin before it are known and final. A later match may depend on text that
  has not arrived (`growth`). The position takes all views into account, including views that exist only if certain text
  follows. An example is the view without a line break that may turn out to be within a number. The settled position is
  at most the length of the longest match before the end (`openings`).
- The *released* position: the text before it may be passed on. It equals the settled position, unless overlapping
  findings extend beyond the settled position. Then it is the start of these findings.
- The start of the *tail*: text before it is dropped. The tail begins far enough before the settled position for a
  search for matches and context words.

Most prose contains nothing that may be a match. Such text is settled without a search.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gatehouse.detection.findings import Finding, FindingsByPlace, KnownFindings, Place, by_place, keep_best
from gatehouse.detection.normalise import View, characters, escapes, joined, seen
from gatehouse.detection.normalise.hidden import Hidden, hidden_view
from gatehouse.detection.normalise.spaced import Spaced, spaced_begun, spaced_view
from gatehouse.detection.pattern import CONTEXT_CHARACTERS_BEFORE, NEAR_CHARACTERS
from gatehouse.detection.pattern_set import MatchChain, PatternSet, Region
from gatehouse.detection.scanning.regions import regions_around_seams, regions_near_escapes
from gatehouse.detection.search.growth import has_rare_characters

#: Number of new code points after which the settled position is computed again.
STEP_CHARACTERS: Final = 32
#: Number of new code points after which the text is searched again.
SEARCH_STEP_CHARACTERS: Final = 64
#: Number of characters before a match that may affect it. The factor 3 is for views without line breaks, in which a
#: line break of two characters may have been removed next to each character.
_BEFORE_CHARACTERS: Final = 3 * CONTEXT_CHARACTERS_BEFORE + characters.REACH_CHARACTERS + joined.LOOKAHEAD_CHARACTERS
#: Number of characters of the tail before the settled position. If a derived view appears later, its search begins
#: there.
_KEPT_CHARACTERS: Final = _BEFORE_CHARACTERS + NEAR_CHARACTERS + 2
#: Length at which the tail is shortened if no search has shortened it before.
_MAX_TAIL_CHARACTERS: Final = 1536
#: Maximum length of unsettled text that is examined as prose. Longer text seldom lacks possible matches.
_MAX_PROSE_CHARACTERS: Final = 128
#: Number of characters before the settled position in which an escape, a line break or a row of separated characters
#: may begin. These may affect a match after the settled position.
_PROSE_LOOKBEHIND_CHARACTERS: Final = CONTEXT_CHARACTERS_BEFORE + 32
#: Minimum characters, after the first one, of a value with separators between its characters.
_MIN_SPACED_CHARACTERS: Final = 6


class _Chains(NamedTuple):
    """The match chains of one `PatternSet` object, one for each view of a text."""

    plain: MatchChain
    over_breaks: MatchChain
    over_escapes: MatchChain
    spaced: MatchChain
    hidden: MatchChain


class _Views(NamedTuple):
    """The views of `text`. A view that the text does not have is None. `joined_view` is the view without line breaks
    within tokens. `seams` are its characters before each removed line break."""

    text: str
    plain: View
    joined_view: View | None
    seams: list[int]
    nested: escapes.Nested | None
    spaced: Spaced | None
    hidden: Hidden | None

    @property
    def all(self) -> list[View]:
        others = (derived.view for derived in (self.nested, self.spaced, self.hidden) if derived is not None)
        return [self.plain, *others] if self.joined_view is None else [self.plain, self.joined_view, *others]

    def derived(self, end: int) -> Iterator[tuple[View | None, int]]:
        """Yield each derived view, or None if the text does not have it. With each view, yield the first character of
        the plain view from which later text may change this view, or `end` if there is none."""
        yield self.joined_view, joined.begun(self.plain, end)
        yield self.nested and self.nested.view, escapes.nested_begun(self.plain, end)
        yield self.spaced and self.spaced.view, spaced_begun(self.plain, end)
        if self.hidden is not None:
            yield self.hidden.view, end


class Scanner:
    """Scans a text that arrives in pieces. The caller calls `push` with each piece, and then `advance` for the findings
    that became final. Offsets count from the beginning of the first piece.

    Matches begin at `start` or later. `known` are the findings of an organization's own patterns in the unchanged text.
    If `known` is set, the scanner does not search for these patterns. With `releases_late`, the settled position is
    always the length of the longest match before the end. This is faster to compute, and suits a text that is not
    passed on before it is complete."""

    def __init__(
        self,
        pattern_sets: Sequence[PatternSet],
        *,
        json_escapes: bool = False,
        start: int = 0,
        known: "KnownFindings | None" = None,
        releases_late: bool = False,
    ) -> None:
        self._sets = pattern_sets
        self._releases_late = releases_late
        self._known = known
        self._json_escapes = json_escapes
        self._tail = ""
        self._base = 0
        self._settled = start
        self._released = 0
        self._due = STEP_CHARACTERS
        self._search_due = SEARCH_STEP_CHARACTERS
        #: findings that begin at the settled position or later
        self._pending: list[Finding] = []
        #: findings that overlap each other, and their common start and end; they are not released, because the last one
        #: ends after the settled position
        self._overlapping: list[Finding] = []
        self._overlap_start = self._overlap_end = -1
        #: findings that begin before the settled position and end after it
        self._crossing_settled: list[Finding] = []
        #: places of findings in the plain view that end after the settled position
        self._plain_places: set[Place] = set()
        self._chains = [_Chains(*(MatchChain(covered=start) for _ in _Chains._fields)) for _ in pattern_sets]

    def push(self, text: str) -> None:
        self._tail += text

    def advance(self, *, final: bool) -> tuple[list[Finding], int]:
        """Return the findings that became final, in order, and the released position. `final` means that the text is
        complete."""
        end = self._base + len(self._tail)
        if final:
            self._search_to_settled(final=True)
            return self._release(final=True)
        if end < self._due:
            return [], self._released
        if not self._settle_prose() and end >= self._search_due:
            self._search_to_settled(final=False)
            self._search_due = end + max(SEARCH_STEP_CHARACTERS, (end - self._settled) // 8)
        # The cost of a run grows with the length of the unsettled text. The distance to the next run grows in the same
        # proportion, so that the total cost is linear.
        self._due = end + max(STEP_CHARACTERS, (end - self._settled) // 8)
        return self._release(final=False)

    def unreleased_findings(self) -> list[Finding]:
        """Return the findings that `advance` has not returned. For a caller that stops scanning."""
        return [*self._overlapping, *self._pending]

    def _settle_prose(self) -> bool:
        """Settle the unsettled text without a search if it contains no possible match. Return whether this is so."""
        unsettled = self._tail[self._settled - self._base :]
        if len(unsettled) > _MAX_PROSE_CHARACTERS:
            return False
        first = max(0, self._settled - self._base - _PROSE_LOOKBEHIND_CHARACTERS)
        text = self._tail[first:]
        view = seen(text, json_escapes=False)
        if view.starts is not None or "\\" in view.text:
            return False
        # The view has the same positions as the text, because no character was removed. Characters may be replaced, for
        # example full-width digits.
        zone = view.data[view.byte(self._settled - self._base - first) :]
        if has_rare_characters(zone) or not all(
            patterns.growth is None or patterns.has_none(zone) for patterns in self._sets
        ):
            return False
        start, known = self._settled - self._base - first, characters.unsettled(view, text)
        if "\n" in text and any(place >= start for place in joined.breaks(view)):
            return False
        settled = end = min(known, joined.begun(view, known), spaced_begun(view, known))
        for patterns in self._sets:
            if patterns.growth is not None:
                settled = min(settled, patterns.growth.growing(view, start, end))
            elif end < known:
                settled = min(settled, patterns.grows_from(view, start, end))
        settled = first + self._as_written(view, first, settled, known, final=False)
        self._settled = max(self._settled, self._base + settled)
        if len(self._tail) > _MAX_TAIL_CHARACTERS:
            self._trim(self._views(final=False))
        return True

    def _search_to_settled(self, *, final: bool) -> None:
        views = self._views(final=final)
        settled = self._settle(views, final=final)
        if settled > self._settled or final:
            self._settled = self._search(views, settled, final=final)
            if not final:
                self._trim(views)

    def _views(self, *, final: bool) -> "_Views":
        text = self._whole(final=final)
        plain = seen(text, json_escapes=self._json_escapes)
        breaks = joined.breaks(plain)
        joined_view, seams = joined.joined(plain, breaks) if breaks else (None, [])
        nested = escapes.nested_view(plain, final=final)
        hidden = hidden_view(text, json_escapes=self._json_escapes)
        return _Views(text, plain, joined_view, seams, nested, spaced_view(plain), hidden)

    def _whole(self, *, final: bool) -> str:
        """Return the tail. Unless the text is final, an incomplete escape at its end is left out."""
        return self._tail if final or not self._json_escapes else self._tail[: escapes.begun(self._tail)]

    def _settle(self, views: "_Views", *, final: bool) -> int:
        """Return the settled position for the current tail."""
        view, length = views.plain, len(self._tail)
        end = len(view) if final else characters.unsettled(view, views.text)
        if final:
            self._as_written(view, 0, end, end, final=True)
            return self._base + length
        # Invisible characters at the end are not settled, because they may be the beginning of hidden text.
        known = view.origin(end - 1, end)[1] if end else 0
        if self._releases_late:
            return self._settled_at(views, self._floor(views, -1), end)
        grows = self._grows_from(view, end, own=False)
        place = known if grows == end else view.start_of(grows, length)
        for derived, begun in views.derived(end):
            if derived is not None or begun < end:
                last = known if begun == end else view.start_of(begun, length)
                place = min(place, self._settled_in_view(views, view if derived is None else derived, last))
        return self._settled_at(views, self._floor(views, place), end)

    def _settled_at(self, views: "_Views", place: int, end: int) -> int:
        """Return the settled position. `place` is the settled position for the built-in patterns. An organization's own
        patterns may have longer matches, so the result may be earlier than `place`."""
        view, length = views.plain, len(self._tail)
        own = self._as_written(view, 0, end, end, final=False)
        if own < end:
            place = min(place, view.start_of(own, length))
        if views.nested is not None:
            place = views.nested.before(place)
        return max(self._settled, self._base + place)

    def _settled_in_view(self, views: "_Views", view: View, known: int) -> int:
        """Return the position up to which all matches in `view` are final. The view is known up to `known`."""
        end = min(view.at(known), characters.unsettled(view, views.text))
        character = self._grows_from(view, end)
        return known if character == view.at(known) else view.start_of(character, known)

    def _grows_from(self, view: View, end: int, *, own: bool = True) -> int:
        """Return the first character at which a match that may extend beyond `end` may begin. `own` includes an
        organization's own patterns."""
        first = view.at(max(0, self._settled - self._base))
        return min(
            (patterns.grows_from(view, first, end) for patterns in self._sets if own or patterns.as_written is None),
            default=end,
        )

    def _floor(self, views: "_Views", place: int) -> int:
        """Return the position before which no match is long enough to extend beyond the end. The result is at least
        `place`."""
        if len(self._tail) - place < min((patterns.openings.window for patterns in self._sets), default=0):
            return place
        floor = len(self._tail)
        for view in views.all:
            end = characters.unsettled(view, views.text)
            first = view.at(max(0, self._settled - self._base))
            settled = min((patterns.openings.settled(view, first, end) for patterns in self._sets), default=end)
            floor = min(floor, view.start_of(max(0, settled), len(self._tail)))
            if floor <= place:
                return place
        return floor

    def _as_written(self, view: View, offset: int, settled: int, end: int, *, final: bool) -> int:
        """Search for an organization's own patterns in `view`. Return the character up to which the text is settled.
        The result is at most `settled`. The view begins at `offset` of the tail and is known up to the character
        `end`."""
        if self._known is not None:
            return settled
        start = view.at(max(0, self._settled - self._base - offset))
        for patterns, (plain, *_) in zip(self._sets, self._chains, strict=True):
            if patterns.as_written is not None:
                resume = plain.over(view, offset)
                findings, place = patterns.as_written.in_stream(
                    view, start, resume, self._base + offset, end, whole=final
                )
                if findings:
                    self._pending = sorted([*self._pending, *findings], key=by_place)
                if not final:
                    plain.keep(resume, view, len(self._tail) - offset, offset)
                    settled = min(settled, place)
        return max(start, settled)

    def _search(self, views: "_Views", settled: int, *, final: bool) -> int:
        """Search all views for matches that begin before `settled`. Return the position up to which all matches are
        known. It is before `settled` if a match depends on a context word that may still arrive."""
        view, nested, spaced, hidden = views.plain, views.nested, views.spaced, views.hidden
        first, last = max(0, self._settled - self._base), settled - self._base
        findings = self._known_findings()
        for patterns, chains in zip(self._sets, self._chains, strict=True):
            if patterns.as_written is None:
                region = Region(view.at(first), view.at(last), len(view))
                new, last = self._search_regions(patterns, view, (region,), chains.plain, last, final=final)
                plain_findings = self._without_partial_escapes(new, nested)
                keep_best(findings, plain_findings)
                self._plain_places.update(map(by_place, plain_findings))
            if views.joined_view is not None:
                over = self._regions(
                    views.joined_view, views.seams, last, chains.over_breaks, width=2, longest=NEAR_CHARACTERS
                )
                new, last = self._search_regions(
                    patterns, views.joined_view, over, chains.over_breaks, last, final=final
                )
                joined_findings = self._without_partial_escapes(new, nested)
                if self._known is not None:
                    joined_findings = [finding for finding in joined_findings if not self._known.covers(finding)]
                keep_best(
                    findings,
                    _outside_plain(joined_findings, self._plain_places if patterns.as_written is None else findings),
                )
            if nested is not None:
                chain = chains.over_escapes
                begin, stop = nested.view.at(chain.covered), nested.view.at(last)
                # The search begins at a fixed distance before an escape. The findings would otherwise depend on how the
                # text is cut.
                reach = patterns.openings.longest_without_opening
                since = nested.view.at(first)
                over = list(
                    regions_near_escapes(nested.escaped, begin, stop, len(nested.view), reach=reach, since=since)
                )
                new, last = self._search_regions(patterns, nested.view, over, chain, last, final=final)
                keep_best(findings, new)
            if spaced is not None and patterns.as_written is None:
                over = self._regions(
                    spaced.view,
                    spaced.seams,
                    last,
                    chains.spaced,
                    width=_MIN_SPACED_CHARACTERS,
                    longest=NEAR_CHARACTERS,
                )
                new, last = self._search_regions(patterns, spaced.view, over, chains.spaced, last, final=final)
                keep_best(findings, self._without_partial_escapes(new, nested))
            if hidden is not None:
                over = self._regions(hidden.view, hidden.positions, last, chains.hidden)
                new, last = self._search_regions(patterns, hidden.view, over, chains.hidden, last, final=final)
                keep_best(findings, self._without_partial_escapes(new, nested))
        settled = self._base + (last if nested is None else nested.before(last))
        settled = max(settled, self._settled)
        self._plain_places = {place for place in self._plain_places if place[1] > settled}
        self._set_pending(findings)
        return settled

    def _known_findings(self) -> "FindingsByPlace":
        return {by_place(finding): finding for finding in (*self._crossing_settled, *self._pending)}

    def _set_pending(self, findings: "FindingsByPlace") -> None:
        settled = set(map(by_place, self._crossing_settled))
        self._pending = sorted((finding for place, finding in findings.items() if place not in settled), key=by_place)

    def _regions(
        self, view: View, seams: list[int], last: int, chain: MatchChain, *, width: int = 1, longest: int = sys.maxsize
    ) -> list[Region]:
        """Return the regions around `seams` that are not searched yet and begin before position `last` of the tail."""
        begin, stop = view.at(chain.covered), view.at(last)
        since = view.at(max(0, self._settled - self._base))
        over = regions_around_seams(seams, begin, stop, len(view), width=width, longest=longest)
        return [region._replace(since=since) for region in over]

    def _search_regions(
        self, patterns: PatternSet, view: View, over: Sequence[Region], chain: MatchChain, last: int, *, final: bool
    ) -> tuple[list[Finding], int]:
        """Return the findings in the regions `over`, and the position of the tail up to which all matches are known.
        This position is `last`, or the start of the first match that depends on a context word that may still arrive.
        The regions end at `last` or earlier."""
        resume = chain.over(view)
        if final:
            return patterns.findings(view, over, resume, self._base), last
        if not over:
            return [], last
        known = characters.unsettled(view, self._whole(final=False))
        findings, waiting = patterns.findings_and_waiting(
            view, [region._replace(known=known) for region in over], resume, self._base
        )
        chain.keep(resume, view, len(self._tail))
        chain.covered = min(last, view.start_of(over[-1].last, last))
        if waiting is not None:
            chain.covered = last = min(chain.covered, view.start_of(waiting, last))
        return findings, last

    def _without_partial_escapes(self, findings: list[Finding], nested: escapes.Nested | None) -> list[Finding]:
        """Return the findings. A start or end within an escape is moved out of the escape."""
        if nested is None:
            return findings
        return [self._without_partial_escape(finding, nested) for finding in findings]

    def _without_partial_escape(self, finding: Finding, nested: escapes.Nested) -> Finding:
        start, end = nested.whole(finding.start - self._base, finding.end - self._base)
        return Finding(self._base + start, self._base + end, finding.entity_type, finding.score, finding.source)

    def _trim(self, views: "_Views") -> None:
        settled, length = max(0, self._settled - self._base), len(self._tail)
        dropped = min(view.start_of(max(0, view.at(settled) - _KEPT_CHARACTERS), length) for view in views.all)
        if dropped <= 0:
            return
        self._tail = self._tail[dropped:]
        self._base += dropped
        for plain, *others in self._chains:
            plain.forget(dropped, settled - dropped)
            for chain in others:
                chain.forget(dropped, chain.covered - dropped)

    def _release(self, *, final: bool) -> tuple[list[Finding], int]:
        cut = self._settled
        count = len(self._pending) if final else bisect_left(self._pending, cut, key=_start)
        settled, self._pending = self._pending[:count], self._pending[count:]
        ready: list[Finding] = []
        for finding in settled:
            if finding.start >= self._overlap_end:
                ready += self._overlapping
                self._overlapping = []
                self._overlap_start, self._overlap_end = finding.start, finding.end
            self._overlapping.append(finding)
            self._overlap_end = max(self._overlap_end, finding.end)
        if final or self._overlap_end <= cut:
            ready += self._overlapping
            self._overlapping = []
        else:
            cut = self._overlap_start
        self._crossing_settled = [
            finding for finding in (*self._crossing_settled, *settled) if finding.end > self._settled
        ]
        self._released = max(self._released, cut)
        return ready, self._released


def _start(finding: Finding) -> int:
    return finding.start


def _outside_plain(joined_findings: Sequence[Finding], plain_places: Iterable[Place]) -> Iterator[Finding]:
    """Yield the findings that do not begin within a finding of the same pattern in the plain view. A finding in the
    plain view is complete without the next line."""
    spans: dict[str, list[tuple[int, int]]] = {}
    if joined_findings:
        for start, end, source in plain_places:
            spans.setdefault(source, []).append((start, end))
    for finding in joined_findings:
        if not any(start <= finding.start < end for start, end in spans.get(finding.source, ())):
            yield finding
