"""Regexes for the assignment of a value to a name, in programming languages, file formats and templates.

If a branch of a regex has no group `value`, the branch is a decoy. It matches text that looks like a secret but is not
(`public_key`, `token_url`), so that no other branch matches this text.
"""

from typing import Final

from gatehouse.detection.catalog.shapes import shape
from gatehouse.detection.pattern import Shape
from gatehouse.detection.validators.secrets import assigned_key

#: The text between the name and the value: `": "`, ` := `, `" => '`, `", "`, `>\n    `, ` string = "`, `: String = "`,
#: ` || "`, `\nvalue: "`.
ASSIGNMENT: Final = (
    r"""[\\"'`\])]{0,3}(?::?\sstring|\s{1,6}value["']?)?\s{0,4}"""
    r"""(?:[:?.!=|+]{0,3}=>?[ \t]{0,5}|[:,][ \t]{0,5}|\|\|[ \t]{0,5}|>\s{0,5})[\\"'`=@]{0,3}"""
)
#: The end of a name, and the text between the name and the value if there is no assignment sign: `--api-token x`,
#: `ENV TOKEN x`, `the key is x`, `| token | x |`.
SPACED_ASSIGNMENT: Final = r"""(?:key|token|secret|password)["'`]?[ \t]{1,2}(?:is[ \t]|\|[ \t])?["'`]?"""


#: Ends of names whose values identify an object of a service and are not secret: `GITHUB_SHA`, `sentry_release`,
#: `segment_id`. `client_id` and `app_id` are not included, because they are half of a credential.
_OBJECT_NAME_END: Final = (
    r"(?:sha1?|sha256|commit|revision|release|digest|checksum|version|tag|image|build|job|run|trace|span|dashboard|num|number|"
    r"[_\-. ](?:uid|guid|lease|region|zone|cluster|namespace|bucket|branch|slug|status|level)|"
    r"(?:(?:build|commit|dashboard|deploy|deployment|event|file|folder|group|image|issue|job|lease|message|node|page|"
    r"pipeline|project|request|resource|run|segment|session|slug|space|span|task|team|thread|trace|tracking|board|channel|"
    r"database|org|organi[sz]ation|workspace|zone)[_\-. ]?)id)"
)


#: A word for a credential in a name on the same line as the value. A service's name alone does not show that a value is
#: a secret, because many of these names are ordinary words (`linear`, `segment`, `square`).
_CREDENTIAL_WORD: Final = (
    r"(?:key|token|secret|passw|[^a-z]pass|pwd|[^a-z]pw|(?:^|[^a-z])o?auth(?:[^o]|$)|api|cred|bearer|access|consumer|private"
    r"|licen[cs]e|[^a-z](?:client|app)[_\-. ]?id)[^\r\n;,{&]{0,40}(?:,[ \t]{0,3}[\"'`])?"
)


def named(names: str, value: str, *, bits: float = 2.8, score: float = 0.8) -> Shape:
    """Return a shape for `value` after a name that contains one of `names` and a word for a credential. `names` are
    alternatives of a regex; case is ignored."""
    return shape(
        rf"(?:{names})(?:[\w .\-]{{0,20}}?{_OBJECT_NAME_END}{ASSIGNMENT}[^\s\"']{{0,16}}"
        rf"|[\w .\-]{{0,16}}(?:{ASSIGNMENT}|{SPACED_ASSIGNMENT})(?P<value>{value}))",
        score,
        assigned_key(bits),
        ignore_case=True,
        preceded_by=_CREDENTIAL_WORD,
    )
