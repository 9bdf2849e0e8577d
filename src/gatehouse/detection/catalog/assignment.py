"""How a value is given to a name, in the languages, file formats and templates people paste.

A branch of a regex without the group `value` is a decoy: it takes what looks alike and must not be found (`public_key`,
`token_url`), so that no other branch sees it.
"""

from typing import Final

from gatehouse.detection.catalog.shapes import shape
from gatehouse.detection.pattern import Shape
from gatehouse.detection.validators.secrets import assigned_key

#: from the end of the name to the value: `": "`, ` := `, `" => '`, `", "`, `>\n    `, ` string = "`, `: String = "`,
#: ` || "`, `\nvalue: "`
GIVEN: Final = (
    r"""[\\"'`\])]{0,3}(?::?\sstring|\s{1,6}value["']?)?\s{0,4}"""
    r"""(?:[:?.!=|+]{0,3}=>?[ \t]{0,5}|[:,][ \t]{0,5}|\|\|[ \t]{0,5}|>\s{0,5})[\\"'`=@]{0,3}"""
)
#: the same without a sign, behind a name that ends so: `--api-token x`, `ENV TOKEN x`, `the key is x`, `| token | x |`
BESIDE: Final = r"""(?:key|token|secret|password)["'`]?[ \t]{1,2}(?:is[ \t]|\|[ \t])?["'`]?"""


#: How names end that hold what a service calls its own things by, and no secret: `GITHUB_SHA`, `sentry_release`,
#: `segment_id`. A `client_id` or `app_id` is half of a credential.
_OF_A_THING: Final = (
    r"(?:sha1?|sha256|commit|revision|release|digest|checksum|version|tag|image|build|job|run|trace|span|dashboard|num|number|"
    r"[_\-. ](?:uid|guid|lease|region|zone|cluster|namespace|bucket|branch|slug|status|level)|"
    r"(?:(?:build|commit|dashboard|deploy|deployment|event|file|folder|group|image|issue|job|lease|message|node|page|"
    r"pipeline|project|request|resource|run|segment|session|slug|space|span|task|team|thread|trace|tracking|board|channel|"
    r"database|org|organi[sz]ation|workspace|zone)[_\-. ]?)id)"
)


#: A word for a credential in a name, on one line with what the name is given. Services are called by ordinary words
#: (`linear`, `segment`, `square`): their names alone say nothing about a random value beside them.
_OF_A_CREDENTIAL: Final = (
    r"(?:key|token|secret|passw|[^a-z]pass|pwd|[^a-z]pw|(?:^|[^a-z])o?auth(?:[^o]|$)|api|cred|bearer|access|consumer|private"
    r"|licen[cs]e|[^a-z](?:client|app)[_\-. ]?id)[^\r\n;,{&]{0,40}(?:,[ \t]{0,3}[\"'`])?"
)


def named(names: str, value: str, *, bits: float = 2.8, score: float = 0.8) -> Shape:
    """`value` as it is given to a name that has one of `names` (alternatives of a regex, any case) and a word for a
    credential in it."""
    return shape(
        rf"(?:{names})(?:[\w .\-]{{0,20}}?{_OF_A_THING}{GIVEN}[^\s\"']{{0,16}}"
        rf"|[\w .\-]{{0,16}}(?:{GIVEN}|{BESIDE})(?P<value>{value}))",
        score,
        assigned_key(bits),
        ignore_case=True,
        preceded_by=_OF_A_CREDENTIAL,
    )
