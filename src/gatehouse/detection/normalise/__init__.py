"""Computes views of a text. A view is a normalised form of the text with a map back to the caller's code points.

characters  the text without invisible code points, and with ASCII characters instead of full-width and mathematical
            characters, digits of other scripts, look-alikes, dashes and blanks
escapes     the character view after the backslash escapes of JSON or source code have been decoded
spaced      the character view without the separators between the characters of a value
hidden      the text with the characters that invisible characters encode
joined      the character view without line breaks within a number or token
decoded     the text after quoted-printable, HTML entities, URL encoding, hex and base64 have been decoded; only
            computed for complete texts

In all views except `decoded`, the form of a code point depends only on a bounded number of neighbours. A stream
therefore has the same views as the complete text.
"""

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.detection.normalise.table import LOOKALIKES
from gatehouse.detection.normalise.view import View
from gatehouse.detection.separator import SEPARATOR

__all__ = ["LOOKALIKES", "SEPARATOR", "View", "seen"]


def seen(text: str, *, json_escapes: bool) -> View:
    """Return the plain view of `text`, which patterns are matched against. `json_escapes` means that the text is raw
    JSON, whose escapes are decoded first."""
    plain = unescaped(text) if json_escapes else None
    return character_view(text) if plain is None else character_view(plain.text).over(plain)
