"""Views of a text: its normalised forms, each with a map back to the caller's code points.

characters  the text itself: invisible code points are removed; full-width and mathematical characters, digits of other
scripts, look-alikes, dashes and blanks become ASCII
escapes     raw JSON with its escapes decoded, then as above
spaced      the same without the separators between the characters of a value
hidden      the text with the content of invisible characters in their place
joined      the same without line breaks within a number or token
decoded     the same with quoted-printable, HTML entities, URL encoding, hex and base64 decoded; only of whole texts

All but the last are local: how a code point is read depends on a bounded number of neighbours, so that a stream is read
like its whole text.
"""

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.detection.normalise.table import LOOKALIKES
from gatehouse.detection.normalise.view import View
from gatehouse.detection.separator import SEPARATOR

__all__ = ["LOOKALIKES", "SEPARATOR", "View", "seen"]


def seen(text: str, *, json_escapes: bool) -> View:
    """Return the view of `text` that patterns are matched against. `json_escapes`: the text is raw JSON."""
    plain = unescaped(text) if json_escapes else None
    return character_view(text) if plain is None else character_view(plain.text).over(plain)
