"""The three template sets: development, held-out and second."""

from typing import Final

from bench.dlp.ordinary import second, turns
from bench.dlp.ordinary.documents import KINDS, TemplateSet
from bench.dlp.ordinary.texts import LANGUAGES

#: Examined while patterns are written.
DEVELOPMENT: Final = TemplateSet(
    0,
    tuple((kind, kind.lines) for kind in KINDS if kind.lines),
    {name: language.sentences for name, language in LANGUAGES.items()},
    turns.DEVELOPMENT,
)
#: Not examined until its false redactions were fixed.
HELD_OUT: Final = TemplateSet(
    1_000_000,
    tuple((kind, kind.held_out) for kind in KINDS if kind.held_out),
    {name: language.held_out for name, language in LANGUAGES.items()},
    turns.HELD_OUT,
)
#: Written after the false redactions in `HELD_OUT` were fixed.
SECOND: Final = TemplateSet(
    2_000_000, tuple((kind, kind.lines) for kind in second.KINDS), second.SENTENCES, second.TOOLS
)
PARTS: Final = {"development": DEVELOPMENT, "held-out": HELD_OUT, "second": SECOND}
