"""A text that arrives in pieces: what is found in it, and up to where it may be passed on.

`Scanner` finds what the whole text would give, however it is cut. Three places move forward through the text:

- *settled*: every match that begins before it is known and final. It is the first place from which a match may begin
  that the text so far does not decide about (`growth`): in any view, also one that what stands at the end may begin,
  such as of a line break within a number. No more than the longest match (`openings`) lies between it and the end.
- *released*: never behind settled, and never within findings that overlap.
- the *tail*: what is kept, so much before settled as a match or a context word needs to see.

Nothing is searched where nothing whole stands before settled: most prose goes on like that.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gatehouse.detection.findings import Finding, Found, Known, Place, by_place, keep
from gatehouse.detection.normalise import View, characters, escapes, joined, seen
from gatehouse.detection.normalise.hidden import Hidden, hidden_view
from gatehouse.detection.normalise.spaced import Spaced, spaced_begun, spaced_view
from gatehouse.detection.pattern import CONTEXT_BEFORE, NEAR
from gatehouse.detection.rules import AFTER_ESCAPE, MatchChain, Region, Rules
from gatehouse.detection.search.growth import is_striking

#: New code points that are worth a look, and those that are worth a search.
STEP: Final = 32
SEARCH_STEP: Final = 64
#: What decides about a match before its beginning. Joined, each character may have had a line break beside it.
_BEFORE: Final = 3 * CONTEXT_BEFORE + characters.REACH + joined.LOOKAHEAD
#: What is kept before settled: a view of something that comes later is searched from so far before that on.
_KEPT: Final = _BEFORE + NEAR + 2
#: A tail without a search is cut when it is so long.
_MAX_TAIL_CHARACTERS: Final = 1536
#: More text than this seldom has nothing that must be searched for.
_MAX_PROSE_CHARACTERS: Final = 128
#: How far before settled something may stand that a view begins with in which a match is decided.
_BESIDE: Final = CONTEXT_BEFORE + 32
#: Characters of a value that is set apart, at least, behind its first one.
_SET_APART: Final = 6


class _Chains(NamedTuple):
    """One matcher's, over each view of a text."""

    plain: MatchChain
    over_breaks: MatchChain
    over_escapes: MatchChain
    spaced: MatchChain
    hidden: MatchChain


class _Views(NamedTuple):
    """Those of `text`: what is without line breaks, and of characters that carry others, only where there are any."""

    text: str
    plain: View
    through: View | None
    seams: list[int]
    nested: escapes.Nested | None
    spaced: Spaced | None
    hidden: Hidden | None

    @property
    def all(self) -> list[View]:
        others = (derived.view for derived in (self.nested, self.spaced, self.hidden) if derived is not None)
        return [self.plain, *others] if self.through is None else [self.plain, self.through, *others]

    def derived(self, end: int) -> Iterator[tuple[View | None, int]]:
        """Each view but the plain one, where it is there, and from which of the plain one's characters on something
        stands that may belong to it, or `end`."""
        yield self.through, joined.begun(self.plain, end)
        yield self.nested and self.nested.view, escapes.nested_begun(self.plain, end)
        yield self.spaced and self.spaced.view, spaced_begun(self.plain, end)
        if self.hidden is not None:
            yield self.hidden.view, end


class Scanner:
    """`push` what has come, `advance` for what is final. `start`: matches begin there or later; offsets count from the
    beginning of all that was pushed. `known`: what an organization's own patterns find in the text as it is written,
    where that is not looked for here. `releases_late`: settled lies the longest match before the end, which takes less
    time to know than from where on a match may begin: for a text that nobody waits for."""

    def __init__(
        self,
        rules: Sequence[Rules],
        *,
        json_escapes: bool = False,
        start: int = 0,
        known: "Known | None" = None,
        releases_late: bool = False,
    ) -> None:
        self._rules = rules
        self._releases_late = releases_late
        self._known = known
        self._json_escapes = json_escapes
        self._tail = ""
        self._base = 0
        self._settled = start
        self._released = 0
        self._due = STEP
        self._search_due = SEARCH_STEP
        #: findings that begin in what is not settled
        self._pending: list[Finding] = []
        #: findings that overlap each other, the last of them beyond settled, and from where to where they go; each is
        #: looked at once, however many they become
        self._overlapping: list[Finding] = []
        self._overlap_start = self._overlap_end = -1
        #: those of them that go beyond settled
        self._reaching: list[Finding] = []
        #: what was found in the text as it is written and goes beyond settled
        self._on_one_line: set[Place] = set()
        self._chains = [_Chains(*(MatchChain(covered=start) for _ in _Chains._fields)) for _ in rules]

    def push(self, text: str) -> None:
        self._tail += text

    def advance(self, *, final: bool) -> tuple[list[Finding], int]:
        """Findings that became final, by their beginning, and up to where the text may be passed on."""
        end = self._base + len(self._tail)
        if final:
            self._search_to_settled(final=True)
            return self._release(final=True)
        if end < self._due:
            return [], self._released
        if not self._pass_on() and end >= self._search_due:
            self._search_to_settled(final=False)
            self._search_due = end + max(SEARCH_STEP, (end - self._settled) // 8)
        # A look costs as much as what is not settled is long: looks are so far apart that the whole stays linear.
        self._due = end + max(STEP, (end - self._settled) // 8)
        return self._release(final=False)

    def unreleased_findings(self) -> list[Finding]:
        """Return the findings that `advance` has not returned, for a caller that scans no further."""
        return [*self._overlapping, *self._pending]

    def _pass_on(self) -> bool:
        """Settles prose, in which nothing is to be searched. Whether it is."""
        unsettled = self._tail[self._settled - self._base :]
        if len(unsettled) > _MAX_PROSE_CHARACTERS:
            return False
        first = max(0, self._settled - self._base - _BESIDE)
        text = self._tail[first:]
        view = seen(text, json_escapes=False)
        if view.starts is not None or "\\" in view.text:
            return False
        # Characters that are read as others, such as full-width digits, are one to one here: the view has the places of
        # the text, and its characters are what the patterns see.
        zone = view.data[view.byte(self._settled - self._base - first) :]
        if is_striking(zone) or not all(rules.growth is None or rules.has_none(zone) for rules in self._rules):
            return False
        start, known = self._settled - self._base - first, characters.unsettled(view, text)
        if "\n" in text and any(place >= start for place in joined.breaks(view)):
            return False
        settled = end = min(known, joined.begun(view, known), spaced_begun(view, known))
        for rules in self._rules:
            if rules.growth is not None:
                settled = min(settled, rules.growth.growing(view, start, end))
            elif end < known:
                settled = min(settled, rules.grows_from(view, start, end))
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
        through, seams = joined.joined(plain, breaks) if breaks else (None, [])
        nested = escapes.nested_view(plain, final=final)
        hidden = hidden_view(text, json_escapes=self._json_escapes)
        return _Views(text, plain, through, seams, nested, spaced_view(plain), hidden)

    def _whole(self, *, final: bool) -> str:
        """The tail without an escape that has only begun."""
        return self._tail if final or not self._json_escapes else self._tail[: escapes.begun(self._tail)]

    def _settle(self, views: "_Views", *, final: bool) -> int:
        """Up to where all matches are decided about."""
        view, length = views.plain, len(self._tail)
        end = len(view) if final else characters.unsettled(view, views.text)
        if final:
            self._as_written(view, 0, end, end, final=True)
            return self._base + length
        # What is not drawn may carry something, once all of it is there.
        known = view.origin(end - 1, end)[1] if end else 0
        if self._releases_late:
            return self._settled_at(views, self._floor(views, -1), end)
        grows = self._grows_from(view, end, own=False)
        place = known if grows == end else view.start_of(grows, length)
        for derived, begun in views.derived(end):
            if derived is not None or begun < end:
                last = known if begun == end else view.start_of(begun, length)
                place = min(place, self._place(views, view if derived is None else derived, last))
        return self._settled_at(views, self._floor(views, place), end)

    def _settled_at(self, views: "_Views", place: int, end: int) -> int:
        """`place`, or before it where an organization's own patterns may match more than what the floor is for."""
        view, length = views.plain, len(self._tail)
        own = self._as_written(view, 0, end, end, final=False)
        if own < end:
            place = min(place, view.start_of(own, length))
        if views.nested is not None:
            place = views.nested.before(place)
        return max(self._settled, self._base + place)

    def _place(self, views: "_Views", view: View, known: int) -> int:
        """The same in one of the views that are known up to a place."""
        end = min(view.at(known), characters.unsettled(view, views.text))
        character = self._grows_from(view, end)
        return known if character == view.at(known) else view.start_of(character, known)

    def _grows_from(self, view: View, end: int, *, own: bool = True) -> int:
        """The first character from which a match may grow beyond `end`; `own`: one of an organization's own patterns,
        too."""
        first = view.at(max(0, self._settled - self._base))
        return min(
            (rules.grows_from(view, first, end) for rules in self._rules if own or rules.as_written is None),
            default=end,
        )

    def _floor(self, views: "_Views", place: int) -> int:
        """Up to where all is settled because no match is so long that it could grow there: `place` or more."""
        if len(self._tail) - place < min((rules.openings.window for rules in self._rules), default=0):
            return place
        floor = len(self._tail)
        for view in views.all:
            end = characters.unsettled(view, views.text)
            first = view.at(max(0, self._settled - self._base))
            settled = min((rules.openings.settled(view, first, end) for rules in self._rules), default=end)
            floor = min(floor, view.start_of(max(0, settled), len(self._tail)))
            if floor <= place:
                return place
        return floor

    def _as_written(self, view: View, offset: int, settled: int, end: int, *, final: bool) -> int:
        """Looks for an organization's own patterns in the text as it is written, in a view of what begins at `offset`
        of the tail and is known to `end`. Up to where all is settled that is to `settled` otherwise."""
        if self._known is not None:
            return settled
        start = view.at(max(0, self._settled - self._base - offset))
        for rules, (plain, *_) in zip(self._rules, self._chains, strict=True):
            if rules.as_written is not None:
                behind = plain.over(view, offset)
                findings, place = rules.as_written.in_stream(view, start, behind, self._base + offset, end, whole=final)
                if findings:
                    self._pending = sorted([*self._pending, *findings], key=by_place)
                if not final:
                    plain.keep(behind, view, len(self._tail) - offset, offset)
                    settled = min(settled, place)
        return max(start, settled)

    def _search(self, views: "_Views", settled: int, *, final: bool) -> int:
        """Looks for what begins before `settled` in all views. Up to where all of it is found that can be: a match may
        wait for a context word."""
        view, nested, spaced, hidden = views.plain, views.nested, views.spaced, views.hidden
        first, last = max(0, self._settled - self._base), settled - self._base
        findings = self._known_places()
        for rules, chains in zip(self._rules, self._chains, strict=True):
            if rules.as_written is None:
                region = Region(view.at(first), view.at(last), len(view))
                new, last = self._look(rules, view, (region,), chains.plain, last, final=final)
                on_one_line = self._of_text(new, nested)
                keep(findings, on_one_line)
                self._on_one_line.update(map(by_place, on_one_line))
            if views.through is not None:
                over = self._regions(views.through, views.seams, last, chains.over_breaks, width=2, longest=NEAR)
                new, last = self._look(rules, views.through, over, chains.over_breaks, last, final=final)
                crossing = self._of_text(new, nested)
                if self._known is not None:
                    crossing = [finding for finding in crossing if not self._known.covers(finding)]
                keep(findings, _unless_whole(crossing, self._on_one_line if rules.as_written is None else findings))
            if nested is not None:
                chain = chains.over_escapes
                begin, stop = nested.view.at(chain.covered), nested.view.at(last)
                # No more is searched before an escape than this: what is found must not depend on how the text is cut.
                reach = rules.openings.longest_without_opening
                since = nested.view.at(first)
                over = list(_around(nested.escaped, begin, stop, len(nested.view), reach=reach, since=since))
                new, last = self._look(rules, nested.view, over, chain, last, final=final)
                keep(findings, new)
            if spaced is not None and rules.as_written is None:
                over = self._regions(spaced.view, spaced.seams, last, chains.spaced, width=_SET_APART, longest=NEAR)
                new, last = self._look(rules, spaced.view, over, chains.spaced, last, final=final)
                keep(findings, self._of_text(new, nested))
            if hidden is not None:
                over = self._regions(hidden.view, hidden.carried, last, chains.hidden)
                new, last = self._look(rules, hidden.view, over, chains.hidden, last, final=final)
                keep(findings, self._of_text(new, nested))
        settled = self._base + (last if nested is None else nested.before(last))
        settled = max(settled, self._settled)
        self._on_one_line = {place for place in self._on_one_line if place[1] > settled}
        self._wait_for(findings)
        return settled

    def _known_places(self) -> "Found":
        return {by_place(finding): finding for finding in (*self._reaching, *self._pending)}

    def _wait_for(self, findings: "Found") -> None:
        settled = set(map(by_place, self._reaching))
        self._pending = sorted((finding for place, finding in findings.items() if place not in settled), key=by_place)

    def _regions(
        self, view: View, seams: list[int], last: int, chain: MatchChain, *, width: int = 1, longest: int = sys.maxsize
    ) -> list[Region]:
        """Those around `seams` that were not searched yet, up to `last` of the tail."""
        begin, stop = view.at(chain.covered), view.at(last)
        since = view.at(max(0, self._settled - self._base))
        over = regions(seams, begin, stop, len(view), width=width, longest=longest)
        return [region._replace(since=since) for region in over]

    def _look(
        self, rules: Rules, view: View, over: Sequence[Region], chain: MatchChain, last: int, *, final: bool
    ) -> tuple[list[Finding], int]:
        """What is found in some regions, none of which goes beyond `last` of the tail, and `last` or a place before it
        where a match waits for a context word."""
        behind = chain.over(view)
        if final:
            return rules.findings(view, over, behind, self._base), last
        if not over:
            return [], last
        known = characters.unsettled(view, self._whole(final=False))
        findings, waiting = rules.look(view, [region._replace(known=known) for region in over], behind, self._base)
        chain.keep(behind, view, len(self._tail))
        chain.covered = min(last, view.start_of(over[-1].last, last))
        if waiting is not None:
            chain.covered = last = min(chain.covered, view.start_of(waiting, last))
        return findings, last

    def _of_text(self, findings: list[Finding], nested: escapes.Nested | None) -> list[Finding]:
        """What is found in the text as it is written, without parts of escapes."""
        if nested is None:
            return findings
        return [self._without_parts(finding, nested) for finding in findings]

    def _without_parts(self, finding: Finding, nested: escapes.Nested) -> Finding:
        start, end = nested.whole(finding.start - self._base, finding.end - self._base)
        return Finding(self._base + start, self._base + end, finding.entity_type, finding.score, finding.source)

    def _trim(self, views: "_Views") -> None:
        settled, length = max(0, self._settled - self._base), len(self._tail)
        gone = min(view.start_of(max(0, view.at(settled) - _KEPT), length) for view in views.all)
        if gone <= 0:
            return
        self._tail = self._tail[gone:]
        self._base += gone
        for plain, *others in self._chains:
            plain.forget(gone, settled - gone)
            for chain in others:
                chain.forget(gone, chain.covered - gone)

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
        self._reaching = [finding for finding in (*self._reaching, *settled) if finding.end > self._settled]
        self._released = max(self._released, cut)
        return ready, self._released


def _around(escaped: Sequence[int], first: int, last: int, end: int, *, reach: int, since: int) -> Iterator[Region]:
    """Where a match may begin, between `first` and `last` of a view that is known to `end`, whose context words or
    edges an escape decides about: a letter of the escape touches them in the text as it is written. Those before
    `since` are known."""
    begin = stop = -1
    for escape in escaped[bisect_left(escaped, first - AFTER_ESCAPE) :]:
        if escape - reach >= last:
            break
        if stop >= 0 and escape - reach > stop:
            yield Region(begin, stop, min(end, stop + NEAR + 2), since=since, beside=escaped)
            stop = -1
        if stop < 0:
            begin = max(first, escape - reach)
        stop = min(last, escape + AFTER_ESCAPE)
    if begin < stop:
        yield Region(begin, stop, min(end, stop + NEAR + 2), since=since, beside=escaped)


def _start(finding: Finding) -> int:
    return finding.start


def _unless_whole(crossing: Sequence[Finding], on_one_line: Iterable[Place]) -> Iterator[Finding]:
    """Without those that begin in what the same pattern finds on one line: the next line is not part of that."""
    spans: dict[str, list[tuple[int, int]]] = {}
    if crossing:
        for start, end, source in on_one_line:
            spans.setdefault(source, []).append((start, end))
    for finding in crossing:
        if not any(start <= finding.start < end for start, end in spans.get(finding.source, ())):
            yield finding


def regions(
    seams: Sequence[int],
    first: int,
    last: int,
    end: int,
    *,
    width: int = 1,
    longest: int = sys.maxsize,
    reach: int = NEAR,
) -> Iterator[Region]:
    """Where a match over one of `seams` may begin, no more than `reach` characters before it, between `first` and
    `last` of a view that is known to `end`."""
    place = bisect_left(seams, first)
    while place < len(seams) and seams[place] - reach < last:
        begin, stop = seams[place] - reach, seams[place] + 1
        own = place
        place += 1
        while place < len(seams) and seams[place] - reach <= stop:
            stop = seams[place] + 1
            place += 1
        begin, stop = max(begin, first), min(stop, last)
        if begin < stop:
            yield Region(begin, stop, min(end, stop + NEAR + 2), longest, seams[own:place], width)
