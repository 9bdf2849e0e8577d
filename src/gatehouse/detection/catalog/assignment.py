"""How a value is given to a name, in the languages, file formats and templates people paste.

A branch of a regex without the group `value` is a decoy: it takes what looks alike and must not be found (`public_key`,
`token_url`), so that no other branch sees it.
"""

from typing import Final

from gatehouse.detection.catalog.shapes import shape
from gatehouse.detection.pattern import Shape
from gatehouse.detection.validators.secrets import assigned_key

#: from the end of the name to the value: `": "`, ` := `, `" => '`, `", "`, `>\n    `, ` string = "`, `\nvalue: "`
GIVEN: Final = (
    r"""[\\"'`\])]{0,3}(?:\sstring|\s{1,6}value["']?)?\s{0,4}"""
    r"""(?:[:?.!=|+]{0,3}=>?[ \t]{0,5}|[:,][ \t]{0,5}|>\s{0,5})[\\"'`=@]{0,3}"""
)


def named(names: str, value: str, *, bits: float = 2.8, score: float = 0.8) -> Shape:
    """`value` as it is given to a name that has one of `names` (alternatives of a regex, any case) in it."""
    return shape(rf"(?:{names})[\w .\-]{{0,16}}{GIVEN}(?P<value>{value})", score, assigned_key(bits), ignore_case=True)
