"""What a tier found, and where."""

import msgspec


class Finding(msgspec.Struct, frozen=True, gc=False):
    """`start` and `end` are Unicode code points of the caller's own text, never of a view of it. `score` is 0.0 to 1.0.

    `source` is what found it: the id of a pattern, the name of a recogniser, a label of the semantic tier.
    """

    start: int
    end: int
    entity_type: str
    score: float
    source: str
