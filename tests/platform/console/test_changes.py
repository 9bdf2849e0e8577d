"""The console's changes send the version that the user saw, so that they never overwrite another change unnoticed."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from tests.platform.console.conftest import CONSOLE
from tests.support.operations import DOCUMENT

SOURCES: Final = CONSOLE / "src"
VERSIONS: Final = SOURCES / "api" / "versions.ts"
_CALL: Final = re.compile(r"\bapi\.(PUT|PATCH|POST|DELETE)\(")
_CONSTANT: Final = re.compile(r'^(?:export )?const ([A-Z]+) = (?:"([^"]+)"|`\$\{([A-Z]+)\}([^`]*)`)', re.MULTILINE)
_FUNCTION: Final = re.compile(r"^(?:export )?(?:async )?function ", re.MULTILINE)
#: The body of a switch: one field, which the user sees and sets. Another field is not overwritten.
_SWITCH: Final = re.compile(r"body: \{ (enabled|is_active: isActive|is_enabled: enabled) \}")
#: The header of a call: one that is made in place, or a variable of this name.
_MADE_HERE: Final = re.compile(r"header: (?:\{ \.\.\.[\w.]+, \.\.\.)?ifMatch\(")
_VARIABLE: Final = re.compile(r"params: \{[^{}]*(?:\{[^{}]*\}[^{}]*)*\bheader\b(?! ?: ?\{\})")
#: Where the variable gets a version: made from one, or a parameter that has no default and whose type requires
#: `If-Match`. So `tsc` refuses a caller that passes none.
_ORIGINS: Final = (
    re.compile(r"const header = (?:useIfMatch\((?!undefined\b)\w|[^;\n]*\bifMatch\()"),
    re.compile(r"const \[header\] = useState\(\(\) => [^;\n]*\bifMatch\("),
    re.compile(r"\bchangeOf\(\s*[\w(][^;]*?, \(header\) =>"),
    re.compile(r"\bheader: IfMatch(?: \| typeof MUST_BE_NEW)?(?= \}|[,)])"),
)
#: A change that removes the whole resource. The question names the resource, whose fields do not matter.
_WHOLE: Final = re.compile(r"\}$")
#: Other changes without a version. None of them overwrites a field that the user did not see.
WITHOUT_VERSION: Final = {
    ("PATCH", "/api/conversations/{conversation_id}"): "a person's own conversation",
    ("PATCH", "/api/v1/admin/org/allowed-domains/{domain}"): "one of two switches",
    ("POST", "/api/conversations/{conversation_id}/share_links"): "adds a link to a person's own conversation",
    ("POST", "/api/admin/groups/{group_id}/members"): "adds a member, and keeps the others",
    ("POST", "/api/admin/groups/{group_id}/model-access"): "adds a rule, and is refused if there is one",
    ("POST", "/api/admin/providers/{provider_id}/credentials"): "adds a credential, and keeps the others",
    ("POST", "/api/admin/users/{user_id}/api-keys"): "adds a key, and keeps the others",
    ("POST", "/api/v1/admin/org/allowed-domains"): "adds a domain, and keeps the others",
    ("POST", "/api/v1/admin/mcp/servers/{server_id}/access"): "adds a rule, and is refused if there is one",
    ("POST", "/api/v1/admin/mcp/servers/{server_id}/disable"): "a kill switch",
    ("POST", "/api/v1/admin/mcp/servers/{server_id}/enable"): "a kill switch",
    ("POST", "/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/disable"): "a kill switch",
    ("POST", "/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/enable"): "a kill switch",
    ("DELETE", "/api/admin/providers/{provider_id}/credentials"): "removes all credentials, as the question says",
    ("DELETE", "/api/admin/users/{user_id}/mfa"): "removes all second factors, as the question says",
    ("DELETE", "/api/admin/users/{user_id}/sessions"): "ends all sessions, as the question says",
    ("POST", "/api/admin/users/{user_id}/password-reset"): "makes a link, and changes no field",
    (
        "POST",
        "/api/v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/replay",
    ): "sends a stored event again, and changes no field",
}


class Call(NamedTuple):
    file: str
    method: str
    path: str
    text: str
    #: the function that makes the call, from its beginning to the end of the call
    function: str


def _calls() -> Iterator[Call]:
    for file in sorted(SOURCES.rglob("*.ts*")):
        if file.name != "schema.d.ts" and ".test." not in file.name:
            yield from calls_of(str(file.relative_to(SOURCES)), file.read_text())


def calls_of(file: str, text: str) -> Iterator[Call]:
    constants: dict[str, str] = {}
    for name, value, base, rest in _CONSTANT.findall(text):
        constants[name] = value or constants.get(base, "") + rest
    starts = [match.start() for match in _FUNCTION.finditer(text)]
    for match in _CALL.finditer(text):
        end = _end(text, match.end())
        call = text[match.end() : end]
        first = re.split(r",\s", call, maxsplit=1)[0].strip('"`')
        path = re.sub(r"\$\{([A-Z]+)\}", lambda name: constants[name[1]], constants.get(first, first))
        start = max((start for start in starts if start < match.start()), default=0)
        yield Call(file, match[1], path, call, text[start:end])


def _end(text: str, start: int) -> int:
    """Return the place of the parenthesis that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError("a call does not end")


def sends_version(call: Call) -> bool:
    """Return whether the call sends `If-Match`, and its version comes from a row or from the caller."""
    if _MADE_HERE.search(call.text):
        return True
    return bool(_VARIABLE.search(call.text)) and any(origin.search(call.function) for origin in _ORIGINS)


def test_every_change_sends_the_version_that_the_user_saw() -> None:
    calls = list(_calls())
    checked: set[tuple[str, str]] = set()
    for call in calls:
        operation = DOCUMENT["paths"][call.path][call.method.lower()]
        offered = any(parameter["name"] == "If-Match" for parameter in operation.get("parameters", []))
        if call.method in {"PUT", "PATCH"}:
            assert offered, (call.file, call.path, "the operation does not check versions")
        if not offered:
            continue
        checked.add((call.method, call.path))
        if call.method == "DELETE" and _WHOLE.search(call.path):
            continue
        needs_none = _SWITCH.search(call.text) is not None or (call.method, call.path) in WITHOUT_VERSION
        assert sends_version(call) is not needs_none, (call.file, call.method, call.path)
    assert len(checked) > 70
    assert WITHOUT_VERSION.keys() <= checked


def test_the_type_of_the_header_requires_the_version() -> None:
    """Otherwise `tsc` would accept a caller that passes an empty header."""
    assert 'export interface IfMatch {\n  "If-Match": string;\n}\n' in VERSIONS.read_text()
    for file in sorted(SOURCES.rglob("*.ts*")):
        text = file.read_text()
        if file.name != "schema.d.ts":
            assert '"If-Match"?:' not in text, (file.name, "use IfMatch")
            assert "as IfMatch" not in text, file.name


_SENT: Final = "api.PUT(P, { params: { header }, body })"


@pytest.mark.parametrize(
    ("parameter", "body", "sends"),
    [
        ("b: B", f"const header = useIfMatch(b);\n  return {_SENT};", True),
        ("b: B", f"const header = useIfMatch(undefined);\n  return {_SENT};", False),
        ("b: B", "return api.PUT(P, { params: { path: { x: 1 }, header: ifMatch(b.at) }, body });", True),
        ("v: V", f"return changeOf(v, (header) => {_SENT});", True),
        ("id: string, header: IfMatch", f"return {_SENT};", True),
        ("header: IfMatch = NONE", f"return {_SENT};", False),
        ("header?: IfMatch", f"return {_SENT};", False),
        ('header: { "If-Match"?: string } = {}', f"return {_SENT};", False),
        ("", f"const header = {{}};\n  return {_SENT};", False),
        ("", f"const header = useIfMatch(b);\n}}\nfunction other() {{\n  return {_SENT};", False),
        ("header: IfMatch", "return api.PUT(P, { body });", False),
        ("header: IfMatch", "return api.PUT(P, { params: { header: {} }, body });", False),
        ("header: IfMatch", "return api.PUT(P, { body: { header: 1 } });", False),
    ],
)
def test_a_header_counts_only_if_a_version_is_passed(parameter: str, body: str, sends: bool) -> None:
    (call,) = calls_of("a.ts", f'const P = "/x";\nexport function change({parameter}) {{\n  {body}\n}}\n')
    assert sends_version(call) is sends
