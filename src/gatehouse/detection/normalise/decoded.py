"""Decodes text in other encodings: quoted-printable, HTML entities, URL encoding, and two levels of hex and base64.

A *segment* is a run of characters that may be hex or base64. A *digit* is a character of a segment. A *group* is the
smallest number of digits that encode complete bytes: four in base64, two in hex.

A character that is decoded from an entity, `%XX` or `=XX` represents exactly the characters that encode it. A character
that is decoded from hex or base64 represents the complete segment if the segment is short. Otherwise it represents the
groups that encode it.
"""

import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import re2

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.escapes import without_escapes
from gatehouse.detection.normalise.text_encodings import UTF_8, UTF_16_BE, UTF_16_LE, TextEncoding
from gatehouse.detection.normalise.view import Piece, View, spliced
from gatehouse.detection.normalise.written import PLACES, QUOTES, entities, quoted
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of

#: Minimum length of a segment that is decoded. Eight bytes have eleven digits in base64.
_MIN_SEGMENT_CHARACTERS: Final = 11
#: Maximum length of a segment that a finding in it covers completely. In a longer segment, which may be a file, a
#: finding covers only the groups that encode it.
_MAX_WHOLE_CHARACTERS: Final = 512
#: The characters of a segment of hex or base64.
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"


def _search(regex: str) -> Search:
    """Return a search that returns only the span of a match, without its groups. This is faster."""
    options = re2.Options()
    options.never_capture = True
    return search_of(re2.compile(regex, options))


_ANY_PLACE: Final = _search(PLACES)

_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_BASE64_DIGITS: Final = ALPHABET[:64]
_URL_SAFE: Final = str.maketrans("-_", "+/")


_AS_WINDOWS_1252: Final = "as-windows-1252"


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_AS_WINDOWS_1252, _as_windows_1252)


def _group() -> str:
    """Return a regex for four digits of base64 that encode three printable ASCII bytes. Several such groups in a row
    seldom occur in other text."""
    high = {byte >> 4 for byte in _PRINTABLE}
    places = (
        {byte >> 2 for byte in _PRINTABLE},
        {(low << 4) | half for low in range(4) for half in high},
        {(half << 2) | top for half in range(16) for top in (0, 1)},
        set(range(64)),
    )
    digits = ("".join(_BASE64_DIGITS[digit] for digit in sorted(place)) for place in places)
    return "".join(f"[{place}{'_-' if '/' in place else ''}]" for place in digits)


#: The beginning of a segment of printable ASCII: eight bytes in hex, or two groups in base64. In base64, most of a
#: third group or a character that is not ASCII must follow. This character may be an invisible one within the segment.
_SEGMENTS: Final = (
    rf"(?:^|[^A-Za-z0-9+])(?:(?:0[xX])?(?:[2-7][0-9a-fA-F]|0[9aAdD]){{8}}"
    rf"|(?:{_group()}){{2}}(?:[A-Za-z0-9+/_=-]{{3}}|[A-Za-z0-9+/_=-]{{0,2}}[^\x00-\x7f]))"
)
_SEGMENT: Final = _search(_SEGMENTS)
#: Encoded ASCII within a segment whose beginning is unknown, is missing or is not ASCII: twelve bytes in base64, ten
#: bytes in hex, or six characters of UTF-16.
_HALF_UTF_16: Final = "A[ACDEFGH][AEIMQUYcgkosw048]A"
_SHIFTED_SEGMENTS: Final = (
    rf"(?:{_group()}){{4}}"
    r"|(?:[2-7][0-9a-fA-F]|0[9aAdD]){10}"
    rf"|{_HALF_UTF_16}[CDI-Za-f][AQgw][AB][A-Za-z0-9+/_-]{_HALF_UTF_16}"
    r"|(?:00[2-7][0-9a-fA-F]){6}"
)
_SHIFTED: Final = _search(_SHIFTED_SEGMENTS)
#: A line of base64 or hex that continues in the next one.
_WRAPPED: Final = _search(r"[A-Za-z0-9+/]{60}\r?\n[ \t]{0,8}[A-Za-z0-9+/]")
#: Maximum characters between the two lines: the line break and the indentation.
_MAX_WRAP_CHARACTERS: Final = 10
#: A line break within a segment, with encoded ASCII before or after it.
_WRAPS: Final = (
    rf"(?:{_group()}){{2}}\r?\n[ \t]{{0,8}}[A-Za-z0-9+/]{{4}}|[A-Za-z0-9+/]{{4}}\r?\n[ \t]{{0,8}}(?:{_group()}){{2}}"
)
_QUOTED_PRINTABLE: Final = _search(QUOTES)
#: Matches most places where text without backslashes may be encoded. `shifts_or_quotes` finds the other places. One
#: regex for all of them would need an automaton with too many states.
ENCODED: Final = f"{PLACES}|{_SEGMENTS}"
_OTHERS: Final = f"{_SHIFTED_SEGMENTS}|{_WRAPS}|{QUOTES}"
_SHIFTED_OR_QUOTED: Final = _search(_OTHERS)
_ENCODED: Final = _search(f"{ENCODED}|{_OTHERS}")
#: Number of digits in the two groups at the beginning of a segment.
_BEGINNING_CHARACTERS: Final = 8
#: Maximum and minimum number of digits that are decoded to recognize the encoding of a shifted segment.
_MAX_PROBE_DIGITS: Final = 16
_MIN_PROBE_DIGITS: Final = 12
#: Number of digits of a shifted segment that are decoded first. The number is doubled while all of them decode to text.
_FIRST_CHUNK_DIGITS: Final = 64
#: Maximum number of digits before and after the decoded text that still belong to the segment. They encode a byte order
#: mark or are a part of a group.
_MAX_EDGE_DIGITS: Final = 7
_PADDING: Final = re.compile("={0,2}")
#: Number of digits at the beginning of a segment that are decoded first.
_PREFIX_DIGITS: Final = 128
#: Minimum share of printable characters, in the decoded prefix and in the complete segment. The prefix may end within a
#: character.
_MIN_PRINTABLE_SHARE_OF_PREFIX: Final = 0.75
_MIN_PRINTABLE_SHARE: Final = 0.9
_DIGITS: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)")
#: Digits that may also be separators between a segment and another part of a path or name.
_JOINTS: Final = re.compile(r"[/_-]")


def shifts_or_quotes(data: bytes) -> bool:
    """Return whether a text may contain quoted-printable text, shifted segments, or segments with line breaks."""
    return _SHIFTED_OR_QUOTED(ANYWHERE, data, 0, len(data))[0][0] >= 0


def candidates(text: str) -> list[tuple[int, int]]:
    """Return the spans of `text`, in code points, that may be encoded. Most texts have none. A span may end at an
    invisible or encoded character within a segment."""
    view = without_escapes(View(text))
    if _ENCODED(ANYWHERE, view.data, 0, len(view.data))[0][0] < 0:
        return []
    spans = [view.origin(*span) for look in (_ANY_PLACE, _QUOTED_PRINTABLE) for span in _match_spans(look, view)]
    view = _unwrapped(view)
    text = view.text
    for start, written, encoded, *_ in _segments(view):
        end = start + len(written)
        if encoded is not None or (end < len(text) and (text[end] in "&%" or not text[end].isascii())):
            spans.append(view.origin(start, end))
    return sorted(spans)


def _match_spans(look: Search, view: View) -> Iterator[tuple[int, int]]:
    """Yield the span of each match, in characters."""
    data, place = view.data, 0
    while (span := look(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        yield view.character(span[0]), view.character(span[1])
        place = span[1]


def decoded_views(view: View) -> list[View]:
    """Return views with the encoded text of `view` decoded, or an empty list if nothing is encoded. If the decoded text
    itself contains segments, a second view has these decoded too. The first view is still needed, because such a
    segment may be a value that is not encoded."""
    has_encoded = False
    for look, pieces in ((_QUOTED_PRINTABLE, quoted), (_ANY_PLACE, entities)):
        if look(ANYWHERE, view.data, 0, len(view.data))[0][0] >= 0:
            view = _decoded(view, pieces(view.text))
            has_encoded = True
    decoded = set(view.replaced())
    first = _without_segments(view, lambda segment: not segment.begins_within(decoded))
    if first is not None:
        view = first
        decoded = set(view.replaced())
    elif not has_encoded:
        return []
    second = _without_segments(view, lambda segment: segment.begins_within(decoded))
    return [view] if second is None else [view, second]


def _without_segments(view: View, is_selected: Callable[["_Segment"], bool]) -> View | None:
    """Return `view` with each segment decoded that `is_selected` accepts, or None if it accepts none."""
    plain = _unwrapped(view)
    pieces = [
        piece
        for segment in _segments(plain)
        if segment.data is not None and is_selected(segment)
        for piece in segment.pieces(plain.text)
    ]
    return _decoded(plain, iter(pieces)) if pieces else None


def _decoded(view: View, pieces: Iterator[Piece]) -> View:
    replaced = spliced(view.text, pieces)
    return (replaced if replaced.text.isascii() else character_view(replaced.text).over(replaced)).over(view)


def _unwrapped(view: View) -> View:
    """Return `view` without the line breaks within segments."""
    data, place = view.data, 0
    removed: list[int] = []
    while (span := _WRAPPED(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        # A match ends with the first character of the next line. The next match may begin at this character.
        place = span[1] - 1
        next_line = view.character(place)
        wrap = view.text[next_line - _MAX_WRAP_CHARACTERS : next_line]
        removed += range(next_line - len(wrap) + len(wrap.rstrip("\r\n\t ")), next_line)
    return view.without(np.array(removed, dtype=np.int64)) if removed else view


class _Segment(NamedTuple):
    """A segment. `start` is the index of its first character, and `written` its characters. `data` are the bytes that
    they encode, or None if these are not text. After the first `prefix` characters, each group of `digits` characters
    encodes `size` bytes. The first `lead` of these bytes are not part of `data`."""

    start: int
    written: str
    data: bytes | None = None
    digits: int = 1
    size: int = 1
    prefix: int = 0
    lead: int = 0
    encoding: str = "utf-8"

    def pieces(self, text: str) -> Iterator[Piece]:
        """Yield the decoded segment as replacements of pieces of `text`. A short segment is one piece. A long segment
        has one piece for every few groups. A blank is added where the decoded text would be next to a letter or
        digit."""
        assert self.data is not None
        end = self.start + len(self.written)
        before = " " if self.start and text[self.start - 1].isalnum() else ""
        after = " " if text[end : end + 1].isalnum() else ""
        if len(self.written) <= _MAX_WHOLE_CHARACTERS:
            yield self.start, end, before + self._read(self.data) + after
            return
        data, wide = self.data, self.encoding != "utf-8"
        step = 2 * self.size if wide else self.size
        begin, first = self.start, 0
        # The numbers of bytes after which both a group and a character may end.
        ends = (n for n in range(1 + wide, 2 * step + 1, 1 + wide) if (self.lead + n) % self.size == 0)
        for last in range(next(ends), len(data) + step, step):
            # A piece must not end within a character, because several groups may encode one character.
            if wide or last >= len(data) or data[last] & 0xC0 != 0x80:
                stop = self.start + self.prefix + (self.lead + last) // self.size * self.digits
                stop = end if last >= len(data) else min(stop, end)
                yield begin, stop, before + self._read(data[first:last]) + (after if stop == end else "")
                begin, first, before = stop, last, ""

    def covered(self) -> tuple[int, int]:
        """Return the amount of digits that encode `data`, and the position where they end. The same digits may be read
        in several ways; for example, most of a text in UTF-16 can also be decoded in the wrong byte order. The reading
        with the greatest pair of values is right."""
        assert self.data is not None
        end = (self.start + self.prefix) * self.size + (self.lead + len(self.data)) * self.digits
        return len(self.data) * self.digits * (3 // self.size), end

    def begins_within(self, characters: set[int]) -> bool:
        return self.start in characters or self.start + self.prefix in characters

    def _read(self, data: bytes) -> str:
        return data.decode(self.encoding, "surrogatepass" if self.encoding != "utf-8" else _AS_WINDOWS_1252)


def reads_as_text(beginning: str) -> bool:
    """Return whether a text that is cut out of a segment begins with a complete group that encodes text."""
    return next((segment.data is not None for segment in _anchored(View(beginning)) if segment.start == 0), False)


def _segments(view: View) -> Iterator[_Segment]:
    """Yield all segments in order."""
    end = 0
    for segment in _anchored(view):
        if segment.data is not None:
            yield from _shifted(view, end, segment.start)
            end = segment.start + len(segment.written)
        yield segment
    yield from _shifted(view, end, len(view))


def _anchored(view: View) -> Iterator[_Segment]:
    """Yield the segments whose first character begins a group that encodes ASCII."""
    data, place = view.data, 0
    while (span := _SEGMENT(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        # A match includes the character before the segment, unless the segment is at the beginning of the text.
        start = view.character(span[0])
        if start or not (view.text[0].isascii() and view.text[0].isalnum()):
            start += 1
        place = view.byte(start + _BEGINNING_CHARACTERS)
        written = _DIGITS.match(view.text, start)
        assert written is not None
        whole = written[0]
        for characters in (whole, _JOINTS.split(whole, maxsplit=1)[0]):
            if len(characters) >= _MIN_SEGMENT_CHARACTERS:
                segment = _hex(start, characters) or _base64(start, characters)
                if segment is not None:
                    yield segment
                    place = view.byte(start + len(characters))
                    break
        else:
            yield _Segment(start, whole)


def _hex(start: int, written: str) -> _Segment | None:
    digits = _HEX.fullmatch(written)
    if digits is None:
        return None
    data = _text(digits[1], _of_hex)
    return None if data is None else _Segment(start, written, data, 2, 1, digits.start(1))


def _of_hex(digits: str) -> bytes:
    # If the end of the segment is missing, the last digit may encode half of a byte. It is ignored.
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _base64(start: int, written: str) -> _Segment | None:
    data = _text(written, _of_base64)
    return None if data is None else _Segment(start, written, data, 4, 3)


def _of_base64(digits: str) -> bytes:
    bare = digits.rstrip("=").translate(_URL_SAFE)
    if len(bare) % 4 == 1:
        # If the end of the segment is missing, the last group may have a single digit, which encodes no byte.
        bare = bare[:-1]
    return binascii.a2b_base64(bare + "=" * (-len(bare) % 4))


def _text(digits: str, decode: Callable[[str], bytes]) -> bytes | None:
    """Return the bytes that `digits` encode, or None if these are not text, which means mostly printable."""
    # The beginning is decoded first. It shows for most other data that it is not text, so that long data is not decoded
    # completely for each possible start.
    if (
        len(digits) > _PREFIX_DIGITS
        and _printable_share(decode(digits[:_PREFIX_DIGITS])) < _MIN_PRINTABLE_SHARE_OF_PREFIX
    ):
        return None
    data = decode(digits)
    return data if _printable_share(data) >= _MIN_PRINTABLE_SHARE else None


def _printable_share(data: bytes) -> float:
    """Return the share of printable characters in decoded bytes."""
    if not data.translate(None, _PRINTABLE):
        return 1.0
    text = _decode(data)
    return (sum(map(str.isprintable, text)) + sum(map(text.count, "\t\r\n"))) / len(text)


def _decode(data: bytes) -> str:
    """Decode UTF-8. An invalid byte becomes one character that is not printable. It is not an error, because a segment
    may begin or end within a character."""
    return data.decode("utf-8", "surrogateescape")


def _shifted(view: View, low: int, high: int) -> Iterator[_Segment]:
    """Yield the segments between the characters `low` and `high` that `_anchored` does not find: segments with other
    digits before them, segments without their first digits, segments whose text does not begin with ASCII, and segments
    in UTF-16."""
    data, place, end = view.data, view.byte(low), view.byte(high)
    while (span := _SHIFTED(ANYWHERE, data, place, end)[0])[0] >= 0:
        start, stop = view.character(span[0]), view.character(span[1])
        readings = [
            reading
            for kind in _KINDS
            for at in range(start, start + kind.digits)
            for reading in kind.readings(view.text, low, at, high)
        ]
        if readings:
            best = max(readings, key=_Segment.covered)
            yield best
            stop = max(stop, best.start + len(best.written))
        low = stop
        place = view.byte(stop)


class _EncodingKind(NamedTuple):
    """Base64 or hex: each group of `digits` characters encodes `size` bytes."""

    alphabet: str
    digits: int
    size: int
    decode: Callable[[str], bytes]

    def readings(self, text: str, low: int, at: int, high: int) -> Iterator[_Segment]:
        """Yield the possible segments around the group at index `at`, one for each text encoding in which the group is
        text. The segments are between `low` and `high`."""
        head = self._digits_from(text, at, min(at + _MAX_PROBE_DIGITS, high))
        if len(head) < _MIN_PROBE_DIGITS:
            return
        data = self.decode(head)
        for lead, form in ((0, UTF_8), (0, UTF_16_LE), (1, UTF_16_LE), (0, UTF_16_BE), (1, UTF_16_BE)):
            if form.begins.match(data, lead):
                yield self._around(text, (low, high), at, lead, form)

    def _digits_from(self, text: str, start: int, stop: int) -> str:
        written = text[start:stop]
        return written[: len(written) - len(written.lstrip(self.alphabet))]

    def _around(self, text: str, within: tuple[int, int], at: int, lead: int, form: TextEncoding) -> _Segment:
        """Return the segment that extends forward and backward from byte `lead` of the group at index `at` as far as
        the bytes are text. The digits are decoded in steps, so that little more than the segment is decoded."""
        low, high = within
        size = _FIRST_CHUNK_DIGITS
        while True:
            written = self._digits_from(text, at, min(at + size, high))
            after = self.decode(written)[lead:]
            forward = form.forward.match(after)
            assert forward is not None
            if len(written) < size or forward.end() < len(after) - _MAX_EDGE_DIGITS:
                break
            size *= 2
        after = after[: forward.end()]
        size = _FIRST_CHUNK_DIGITS
        while True:
            written = text[max(low, at - size) : at]
            digits = len(written) - len(written.rstrip(self.alphabet))
            before = self.decode(text[at - digits // self.digits * self.digits : at + self.digits])
            before = before[: len(before) - self.size + lead][::-1]
            backward = form.backward.match(before)
            assert backward is not None
            if digits < size or backward.end() < len(before) - _MAX_EDGE_DIGITS:
                break
            size *= 2
        before = before[: backward.end()][::-1]
        # Byte positions relative to the group at index `at`. `first` may be negative.
        first, last = lead - len(before), lead + len(after)
        begin, stop = at + first // self.size * self.digits, at - (-last * self.digits // self.size)
        prefix = self._edge_digits(text[max(low, begin - _MAX_EDGE_DIGITS - 1) : begin][::-1])
        stop = min(stop, high)
        rest = self._edge_digits(text[stop : min(stop + _MAX_EDGE_DIGITS + 1, high)])
        padding = _PADDING.match(text, stop + rest)
        stop = padding.end() if padding is not None and padding.end() <= high else stop + rest
        start = begin - prefix
        data, lead = before + after, first % self.size
        return _Segment(start, text[start:stop], data, self.digits, self.size, prefix, lead, form.encoding)

    def _edge_digits(self, near: str) -> int:
        """Return the number of digits in `near`, the characters next to a segment, that belong to the segment. Return 0
        if there are more than `_MAX_EDGE_DIGITS`."""
        digits = len(near) - len(near.lstrip(self.alphabet))
        return digits if digits <= _MAX_EDGE_DIGITS else 0


_KINDS: Final = (
    _EncodingKind("0123456789ABCDEFabcdef", 2, 1, _of_hex),
    _EncodingKind(ALPHABET, 4, 3, _of_base64),
)
