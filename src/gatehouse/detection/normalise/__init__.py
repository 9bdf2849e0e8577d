"""Views of a text: what the patterns see through, and the exact way back to the caller's code points.

characters  the text itself: code points that are not drawn are gone; full-width, mathematical and other scripts' digits
            and letters, look-alikes, dashes and blanks are their ASCII selves
escapes     JSON text as it arrives: what its escapes stand for, then as above
spaced      the same without the signs that set the characters of a value apart
hidden      the text itself with what characters that nobody sees carry in their place
joined      the same without line breaks that go through a number or token
decoded     the same with quoted-printable, HTML entities, URL encoding, hex and base64 decoded; only of whole texts

All but the last are local: what a code point is read as depends on a bounded number of neighbours, so that a stream is
read as its whole text is.
"""

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.detection.normalise.table import LOOKALIKES
from gatehouse.detection.normalise.view import View
from gatehouse.detection.separator import SEPARATOR

__all__ = ["LOOKALIKES", "SEPARATOR", "View", "seen"]


def seen(text: str, *, json_escapes: bool) -> View:
    """`text` as the patterns see it. `json_escapes`: it is JSON as written."""
    plain = unescaped(text) if json_escapes else None
    return character_view(text) if plain is None else character_view(plain.text).over(plain)
