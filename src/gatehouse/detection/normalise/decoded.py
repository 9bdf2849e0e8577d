"""What is written in another encoding: quoted-printable, HTML entities, URL encoding, two levels of hex and base64.

A decoded character stands for its own entity, `%XX` or `=XX`; one out of hex or base64 for all of the encoded segment,
or for its own place in a long one.
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
from gatehouse.detection.normalise.view import Piece, View, spliced
from gatehouse.detection.normalise.written import PLACES, QUOTES, entities, quoted
from gatehouse.detection.regex.byte_search import ANYWHERE, Search, search_of

#: Shorter segments are not tried: eight digits in base64.
_MIN_SEGMENT_CHARACTERS: Final = 11
#: Of a segment no longer than this all is the finding; in a longer one, which may be a file, only its place.
_WHOLE: Final = 512
#: What a segment of hex or base64 is made of.
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"


def _quick(regex: str) -> Search:
    """RE2's search for the whole of a match."""
    options = re2.Options()
    options.never_capture = True
    return search_of(re2.compile(regex, options))


_ANY_PLACE: Final = _quick(PLACES)

_PRINTABLE: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_BASE64_DIGITS: Final = ALPHABET[:64]
_URL_SAFE: Final = str.maketrans("-_", "+/")


_AS_WINDOWS_1252: Final = "as-windows-1252"


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_AS_WINDOWS_1252, _as_windows_1252)


def _group() -> str:
    """Three printable ASCII bytes as four digits of base64: little else looks like several of them in a row."""
    high = {byte >> 4 for byte in _PRINTABLE}
    places = (
        {byte >> 2 for byte in _PRINTABLE},
        {(low << 4) | half for low in range(4) for half in high},
        {(half << 2) | top for half in range(16) for top in (0, 1)},
        set(range(64)),
    )
    digits = ("".join(_BASE64_DIGITS[digit] for digit in sorted(place)) for place in places)
    return "".join(f"[{place}{'_-' if '/' in place else ''}]" for place in digits)


#: Where a segment can begin: two groups of base64, or eight bytes of hex, that are printable ASCII. More of it follows,
#: or what is not drawn.
_SEGMENTS: Final = (
    rf"(?:^|[^A-Za-z0-9+])(?:(?:0[xX])?(?:[2-7][0-9a-fA-F]|0[9aAdD]){{8}}"
    rf"|(?:{_group()}){{2}}(?:[A-Za-z0-9+/_=-]{{3}}|[A-Za-z0-9+/_=-]{{0,2}}[^\x00-\x7f]))"
)
_SEGMENT: Final = _quick(_SEGMENTS)
#: A segment that is shifted, cut, or begins with what is not ASCII: twelve bytes of ASCII in base64, ten in hex or six
#: characters of it in UTF-16, wherever they stand.
_HALF_UTF_16: Final = "A[ACDEFGH][AEIMQUYcgkosw048]A"
_SHIFTED_SEGMENTS: Final = (
    rf"(?:{_group()}){{4}}"
    r"|(?:[2-7][0-9a-fA-F]|0[9aAdD]){10}"
    rf"|{_HALF_UTF_16}[CDI-Za-f][AQgw][AB][A-Za-z0-9+/_-]{_HALF_UTF_16}"
    r"|(?:00[2-7][0-9a-fA-F]){6}"
)
_SHIFTED: Final = _quick(_SHIFTED_SEGMENTS)
#: A line of base64 or hex that goes on in the next one, and text beside its break.
_WRAPPED: Final = _quick(r"[A-Za-z0-9+/]{60}\r?\n[ \t]{0,8}[A-Za-z0-9+/]")
_MAX_WRAP_CHARACTERS: Final = 10
_WRAPS: Final = (
    rf"(?:{_group()}){{2}}\r?\n[ \t]{{0,8}}[A-Za-z0-9+/]{{4}}|[A-Za-z0-9+/]{{4}}\r?\n[ \t]{{0,8}}(?:{_group()}){{2}}"
)
_QUOTED_PRINTABLE: Final = _quick(QUOTES)
#: Matches wherever something may be encoded in a text without backslashes, but for what `shifts_or_quotes` tells:
#: beside many other regexes that would make too many states of an automaton.
ENCODED: Final = f"{PLACES}|{_SEGMENTS}"
_OTHERS: Final = f"{_SHIFTED_SEGMENTS}|{_WRAPS}|{QUOTES}"
_SHIFTED_OR_QUOTED: Final = _quick(_OTHERS)
_ENCODED: Final = _quick(f"{ENCODED}|{_OTHERS}")
_GROUPS: Final = 8
#: Characters of a shifted segment that tell what it is, at most and at least; those that are decoded at first; and how
#: many beside what reads as text belong to it: a byte order mark, and the rest of a group.
_HIT: Final = 16
_FEWEST_DIGITS: Final = 12
_CHUNK: Final = 64
_EDGE: Final = 7
_PADDING: Final = re.compile("={0,2}")
#: Digits at the beginning of a segment that are decoded before all of it is.
_BEGINNING: Final = 128
#: Which part of what is encoded must be printable: of the beginning, which may be cut within a character, and of all.
_MOST_OF_BEGINNING: Final = 0.75
_MIN_PRINTABLE_SHARE: Final = 0.9
_WRITTEN: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)")
#: Behind a segment a path or a name with dashes may go on.
_GOES_ON: Final = re.compile(r"[/_-]")


def shifts_or_quotes(data: bytes) -> bool:
    """Whether there may be quoted-printable, or segments that are shifted or wrapped, in a text."""
    return _SHIFTED_OR_QUOTED(ANYWHERE, data, 0, len(data))[0][0] >= 0


def candidates(text: str) -> list[tuple[int, int]]:
    """Where something in `text` looks encoded, from one code point to another: in most texts nowhere. What is not drawn
    may stand in a segment, and some of its signs may be encoded once more."""
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
    """From which character to which each match goes."""
    data, place = view.data, 0
    while (span := look(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        yield view.character(span[0]), view.character(span[1])
        place = span[1]


def decoded_views(view: View) -> list[View]:
    """`view` with all that is encoded in it decoded, and once more where what was decoded has a segment in it, which
    may as well be a value as it stands. Empty where nothing is encoded."""
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


def _without_segments(view: View, which: Callable[["_Segment"], bool]) -> View | None:
    """`view` with some of its segments decoded; None where there are none."""
    plain = _unwrapped(view)
    pieces = [
        piece
        for segment in _segments(plain)
        if segment.data is not None and which(segment)
        for piece in segment.pieces(plain.text)
    ]
    return _decoded(plain, iter(pieces)) if pieces else None


def _decoded(view: View, pieces: Iterator[Piece]) -> View:
    spelled = spliced(view.text, pieces)
    return (spelled if spelled.text.isascii() else character_view(spelled.text).over(spelled)).over(view)


def _unwrapped(view: View) -> View:
    """`view` without the line breaks within segments."""
    data, place = view.data, 0
    gone: list[int] = []
    while (span := _WRAPPED(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        # A match ends with the first character of the next line, with which another one may begin.
        place = span[1] - 1
        behind = view.character(place)
        wrap = view.text[behind - _MAX_WRAP_CHARACTERS : behind]
        gone += range(behind - len(wrap) + len(wrap.rstrip("\r\n\t ")), behind)
    return view.without(np.array(gone, dtype=np.int64)) if gone else view


class _Segment(NamedTuple):
    """Where it begins, the characters of it, and the bytes that they encode: None where they encode no text. A
    group of `digits` characters, behind a `prefix` of some, encodes `size` bytes; the first `lead` of them are left
    out of `data`."""

    start: int
    written: str
    data: bytes | None = None
    digits: int = 1
    size: int = 1
    prefix: int = 0
    lead: int = 0
    encoding: str = "utf-8"

    def pieces(self, text: str) -> Iterator[Piece]:
        """What is encoded, by its place in `text`: all of a short segment for each character, in a long one its own
        groups. A blank sets it apart from what it touches."""
        assert self.data is not None
        end = self.start + len(self.written)
        before = " " if self.start and text[self.start - 1].isalnum() else ""
        after = " " if text[end : end + 1].isalnum() else ""
        if len(self.written) <= _WHOLE:
            yield self.start, end, before + self._read(self.data) + after
            return
        data, wide = self.data, self.encoding != "utf-8"
        step = 2 * self.size if wide else self.size
        begin, first = self.start, 0
        # The first place where both a group and a character may end.
        ends = (n for n in range(1 + wide, 2 * step + 1, 1 + wide) if (self.lead + n) % self.size == 0)
        for behind in range(next(ends), len(data) + step, step):
            # A character may be encoded by several groups.
            if wide or behind >= len(data) or data[behind] & 0xC0 != 0x80:
                stop = self.start + self.prefix + (self.lead + behind) // self.size * self.digits
                stop = end if behind >= len(data) else min(stop, end)
                yield begin, stop, before + self._read(data[first:behind]) + (after if stop == end else "")
                begin, first, before = stop, behind, ""

    def covered(self) -> tuple[int, int]:
        """How much of it encodes what is read, and where that ends: the same text in UTF-16 can be read in either order
        of bytes, but for its first and last character."""
        assert self.data is not None
        end = (self.start + self.prefix) * self.size + (self.lead + len(self.data)) * self.digits
        return len(self.data) * self.digits * (3 // self.size), end

    def begins_within(self, characters: set[int]) -> bool:
        return self.start in characters or self.start + self.prefix in characters

    def _read(self, data: bytes) -> str:
        return data.decode(self.encoding, "surrogatepass" if self.encoding != "utf-8" else _AS_WINDOWS_1252)


def reads_as_text(beginning: str) -> bool:
    """Whether a text that begins within a segment begins with a whole group of it."""
    return next((segment.data is not None for segment in _anchored(View(beginning)) if segment.start == 0), False)


def _segments(view: View) -> Iterator[_Segment]:
    """Where a segment begins, as far as it goes, and what it encodes, if it does."""
    behind = 0
    for segment in _anchored(view):
        if segment.data is not None:
            yield from _shifted(view, behind, segment.start)
            behind = segment.start + len(segment.written)
        yield segment
    yield from _shifted(view, behind, len(view))


def _anchored(view: View) -> Iterator[_Segment]:
    """Those whose first character begins a group that encodes ASCII."""
    data, place = view.data, 0
    while (span := _SEGMENT(ANYWHERE, data, place, len(data))[0])[0] >= 0:
        # A match has the character before the segment, too, but for one at the very beginning.
        start = view.character(span[0])
        if start or not (view.text[0].isascii() and view.text[0].isalnum()):
            start += 1
        place = view.byte(start + _GROUPS)
        written = _WRITTEN.match(view.text, start)
        assert written is not None
        whole = written[0]
        for characters in (whole, _GOES_ON.split(whole, maxsplit=1)[0]):
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
    # Of a segment that is cut off, the last digit may be half of a byte.
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _base64(start: int, written: str) -> _Segment | None:
    data = _text(written, _of_base64)
    return None if data is None else _Segment(start, written, data, 4, 3)


def _of_base64(digits: str) -> bytes:
    bare = digits.rstrip("=").translate(_URL_SAFE)
    if len(bare) % 4 == 1:
        # The first digit of a group that is cut off.
        bare = bare[:-1]
    return binascii.a2b_base64(bare + "=" * (-len(bare) % 4))


def _text(digits: str, decode: Callable[[str], bytes]) -> bytes | None:
    """What `digits` encode, where it is mostly printable: anything else was not text before it was encoded."""
    # Most of what is no text does not begin like one: it is not decoded to its end at each place where it may begin.
    if len(digits) > _BEGINNING and _printable(decode(digits[:_BEGINNING])) < _MOST_OF_BEGINNING:
        return None
    data = decode(digits)
    return data if _printable(data) >= _MIN_PRINTABLE_SHARE else None


def _printable(data: bytes) -> float:
    """Which part of its characters is printable."""
    if not data.translate(None, _PRINTABLE):
        return 1.0
    text = _decode(data)
    return (sum(map(str.isprintable, text)) + sum(map(text.count, "\t\r\n"))) / len(text)


def _decode(data: bytes) -> str:
    """As UTF-8. A byte that is none is one character that is not printable: a segment may be cut within a character,
    and one bad byte hides nothing of the rest."""
    return data.decode("utf-8", "surrogateescape")


def _shifted(view: View, low: int, high: int) -> Iterator[_Segment]:
    """The other ones between two characters: some signs may stand before a segment, or be cut off from it, and what it
    encodes may begin with what is not ASCII, or be in UTF-16."""
    data, place, end = view.data, view.byte(low), view.byte(high)
    while (span := _SHIFTED(ANYWHERE, data, place, end)[0])[0] >= 0:
        start, stop = view.character(span[0]), view.character(span[1])
        stretches = [
            stretch
            for kind in _KINDS
            for at in range(start, start + kind.digits)
            for stretch in kind.stretches(view.text, low, at, high)
        ]
        if stretches:
            best = max(stretches, key=_Segment.covered)
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

    def stretches(self, text: str, low: int, at: int, high: int) -> Iterator[_Segment]:
        """What reads as text around the group that begins `at`: none, or in UTF-16 one for each order of bytes."""
        head = self._digits_from(text, at, min(at + _HIT, high))
        if len(head) < _FEWEST_DIGITS:
            return
        data = self.decode(head)
        for lead, form in ((0, _ONE_BYTE), (0, _LITTLE), (1, _LITTLE), (0, _BIG), (1, _BIG)):
            if form.begins.match(data, lead):
                yield self._around(text, (low, high), at, lead, form)

    def _digits_from(self, text: str, start: int, stop: int) -> str:
        written = text[start:stop]
        return written[: len(written) - len(written.lstrip(self.alphabet))]

    def _around(self, text: str, within: tuple[int, int], at: int, lead: int, form: "_Form") -> _Segment:
        """The bytes from the one `lead` behind the beginning of the group `at` on, and before it, as far as they read
        as text. What is decoded is in proportion to them, beside a few groups."""
        low, high = within
        size = _CHUNK
        while True:
            written = self._digits_from(text, at, min(at + size, high))
            after = self.decode(written)[lead:]
            forward = form.forward.match(after)
            assert forward is not None
            if len(written) < size or forward.end() < len(after) - _EDGE:
                break
            size *= 2
        after = after[: forward.end()]
        size = _CHUNK
        while True:
            written = text[max(low, at - size) : at]
            digits = len(written) - len(written.rstrip(self.alphabet))
            before = self.decode(text[at - digits // self.digits * self.digits : at + self.digits])
            before = before[: len(before) - self.size + lead][::-1]
            backward = form.backward.match(before)
            assert backward is not None
            if digits < size or backward.end() < len(before) - _EDGE:
                break
            size *= 2
        before = before[: backward.end()][::-1]
        # In groups from `at` on, the first of which may be negative.
        first, behind = lead - len(before), lead + len(after)
        begin, stop = at + first // self.size * self.digits, at - (-behind * self.digits // self.size)
        prefix = self._beside(text[max(low, begin - _EDGE - 1) : begin][::-1])
        stop = min(stop, high)
        rest = self._beside(text[stop : min(stop + _EDGE + 1, high)])
        padding = _PADDING.match(text, stop + rest)
        stop = padding.end() if padding is not None and padding.end() <= high else stop + rest
        start = begin - prefix
        data, lead = before + after, first % self.size
        return _Segment(start, text[start:stop], data, self.digits, self.size, prefix, lead, form.encoding)

    def _beside(self, near: str) -> int:
        """How many characters belong to a segment that they are beside: a few that are no text, or none."""
        digits = len(near) - len(near.lstrip(self.alphabet))
        return digits if digits <= _EDGE else 0


class _Form(NamedTuple):
    """How text is made of bytes: what tells it, and how far it goes, forward and in bytes backward."""

    encoding: str
    begins: re.Pattern[bytes]
    forward: re.Pattern[bytes]
    backward: re.Pattern[bytes]


_CHARACTER: Final = rb"[\t\r\n -~]"
#: Windows-1252 has letters that are not ASCII alone or in twos.
_FEW: Final = rb"[\x80-\xff]{1,2}(?![\x80-\xff])"
_UTF_8: Final = rb"(?:%b|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|%b)*+" % (
    _CHARACTER,
    _FEW,
)
_UTF_8_BACKWARD: Final = rb"(?:%b|[\x80-\xbf][\xc2-\xdf]|[\x80-\xbf]{2}[\xe0-\xef]|[\x80-\xbf]{3}[\xf0-\xf4]|%b)*+" % (
    _CHARACTER,
    _FEW,
)
#: The first bytes of the code points of letters and signs, without those of U+FE00 on (a byte order mark).
_HIGH: Final = rb"[\x01-\x06\x09-\x0e\x10\x1e-\x22\x30\x4e-\x9f\xac-\xdf\xff]"
_LOW_FIRST: Final = re.compile(rb"(?s:[\t\r\n -~\xa0-\xfe]\0|.%b)*+" % _HIGH)
_HIGH_FIRST: Final = re.compile(rb"(?s:\0[\t\r\n -~\xa0-\xfe]|%b.)*+" % _HIGH)
_ONE_BYTE: Final = _Form("utf-8", re.compile(rb"%b{8}" % _CHARACTER), re.compile(_UTF_8), re.compile(_UTF_8_BACKWARD))
_LITTLE: Final = _Form("utf-16-le", re.compile(rb"(?:%b\0){3}" % _CHARACTER), _LOW_FIRST, _HIGH_FIRST)
_BIG: Final = _Form("utf-16-be", re.compile(rb"(?:\0%b){3}" % _CHARACTER), _HIGH_FIRST, _LOW_FIRST)
_KINDS: Final = (
    _EncodingKind("0123456789ABCDEFabcdef", 2, 1, _of_hex),
    _EncodingKind(ALPHABET, 4, 3, _of_base64),
)
