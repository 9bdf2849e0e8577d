"""The three template sets: development, held-out and held-out-2."""

from typing import Final

from bench.dlp.ordinary import held_out_2, turns
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
HELD_OUT_2: Final = TemplateSet(
    2_000_000, tuple((kind, kind.lines) for kind in held_out_2.KINDS), held_out_2.SENTENCES, held_out_2.TOOLS
)
PARTS: Final = {"development": DEVELOPMENT, "held-out": HELD_OUT, "held-out-2": HELD_OUT_2}
