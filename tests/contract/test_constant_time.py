"""Secrets are compared in constant time, so that the duration of a comparison does not show how much of a guess was
right. Most secrets are not compared, but looked up by their SHA-256; Argon2 verifies passwords. All other secrets are
compared with `hmac.compare_digest`, and these places are listed here. Other comparisons of values with names like
secrets are listed too, each with the reason why it is harmless.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src" / "gatehouse"

#: The number of calls of `hmac.compare_digest` in each file. The number is lower if a call was replaced by an operator.
COMPARED: Final = {
    # the code of an authenticator app
    "platform/access/mfa/totp.py": 1,
    # the proof in a form, which belongs to the browser's cookie
    "platform/access/sign_in/proof.py": 1,
    # the cookie of the browser in which a SAML sign-in began
    "platform/access/saml/sign_in.py": 1,
    # an OAuth client's secret, and the previous one
    "platform/access/tokens/service.py": 3,
    # the verifier of an authorization code (PKCE)
    "platform/access/tokens/codes.py": 1,
    # the proofs of workers and the owner of stdio servers
    "engine/mcp/stdio/authentication.py": 1,
    # a cursor's signature
    "foundation/http/lists.py": 1,
    # The code of a response's id.
    "foundation/secrets/owned_ids.py": 1,
    # an outpost's admin token
    "outpost/admin/access.py": 1,
    # the portal's admin keys, by their digests
    "portal/request/callers.py": 1,
    # the state of a sign-in, which belongs to the browser's cookie
    "portal/sso/service.py": 1,
}

_secret = re.compile(
    r"secret|passw|token(?!s)|digest|signature|csrf|api_?key"
    r"|(^|_)(mac|hmac|code|hash|challenge|verifier|nonce|proof|judged)$",
    re.IGNORECASE,
).search

#: Comparisons for which an attacker cannot choose either value.
HARMLESS: Final = {
    # codes of JSON-RPC errors, and hashes of tools' definitions
    "engine/mcp/calling.py": {"failed.rpc_code == INVALID_PARAMS"},
    "engine/mcp/discovery.py": {"failed.rpc_code == UNSUPPORTED_REVISION"},
    "platform/mcp/tools/refreshing.py": {"present.hash != row.hash"},
    "platform/mcp/tools/service.py": {"row.approved_hash != row.hash", "row.hash != decision.hash"},
    # two stored hashes, to detect a changed password
    "platform/access/accounts/service.py": {"user.password_hash != verified_hash"},
    "platform/access/sessions/service.py": {"user.password_hash != account.password_hash"},
    # conditions of a query
    "platform/records/spend/table.py": {"changed.c.api_key_id == key.id", "costs.api_key_id == key.id"},
    # the audit chain, read by its owner
    "platform/records/audit/checking.py": {
        "personal_digest(event) != row.personal_digest",
        "link(row.prev_hash, row.tenant_id, row.sequence, event, row.personal_digest) != row.hash",
        "row.prev_hash != previous",
    },
    "platform/records/audit/verify.py": {
        "(sequence, previous) != (chain.sequence, chain.hash)",
        "(file_range.first, file_range.prev_hash) != (sequence + 1, previous)",
    },
    # digests of pictures, which are public in their addresses
    "platform/access/preferences/routes.py": {"v == digest"},
    "platform/access/preferences/service.py": {
        "await table.avatar_digest(change.session, user_id) != digest",
    },
    # digests of files, to detect incomplete ones
    "engine/measures/tokenizers.py": {"hashlib.sha256(file.read_bytes()).hexdigest() != digest"},
    "platform/records/archive/storage/writer.py": {"files.digest(source) != (size, sha256)"},
    # digests of keys in a table in shared memory
    "foundation/processes/shared_times.py": {"words[place] == digest"},
    # values in public DNS
    "platform/organization/allowed_domains/service.py": {"row.challenge != challenge"},
    # check digits, names of events and errors
    "detection/validators/wallets.py": {
        "hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]",
    },
    "foundation/http/envelopes.py": {"error.code != Unprocessable.code"},
    # The name of a field, and ids of keys.
    "engine/conversation/dialects/openai_responses/native.py": {"name != _SIGNATURES"},
    "platform/records/usage/listing.py": {"columns.api_key_id == key_id"},
    # the start of a month at a peer whose proof was verified before
    "outpost/money/leases.py": {"granted.nonce == claim.nonce"},
    # the id of a signed element; the signature itself is verified
    "platform/access/saml/protocol/trust.py": {"""reference.get('URI') != f"#{signature.getparent().get('ID')}\""""},
}


def comparisons(source: str) -> Iterator[str]:
    """Yield each comparison by `==` or `!=` in which one expression has a name like a secret."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare) or not any(isinstance(item, ast.Eq | ast.NotEq) for item in node.ops):
            continue
        sides = [node.left, *node.comparators]
        # A constant, such as a kind or a prefix, is not secret.
        if any(isinstance(side, ast.Constant) for side in sides):
            continue
        # The database evaluates this expression. It looks up the digest with an index.
        if any(isinstance(side, ast.Attribute) and ast.unparse(side).split(".")[0].endswith("Row") for side in sides):
            continue
        if any(_secret(name) for side in sides for name in _names(side)):
            yield ast.unparse(node)


def _names(node: ast.AST) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            yield item.id
        elif isinstance(item, ast.Attribute):
            yield item.attr


def in_constant_time(source: str) -> int:
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return sum(ast.unparse(function) == "hmac.compare_digest" for function in calls)


def test_presented_secrets_are_compared_in_constant_time() -> None:
    result = {str(path.relative_to(SOURCE)): in_constant_time(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {path: count for path, count in result.items() if count} == COMPARED


def test_no_secret_is_compared_with_an_ordinary_operator() -> None:
    actual = {
        str(path.relative_to(SOURCE)): result
        for path in sorted(SOURCE.rglob("*.py"))
        if (result := set(comparisons(path.read_text())))
    }
    assert actual == HARMLESS


@pytest.mark.parametrize(
    "source",
    [
        "if given == client.secret: pass",
        "x = tokens.digest(shown) != asked.browser_digest",
        "return row.code == code",
        "ok = expected_mac == mac",
        "return given in () or password == other",
    ],
)
def test_a_comparison_with_variable_duration_is_found(source: str) -> None:
    assert list(comparisons(f"def f():\n    {source}"))


@pytest.mark.parametrize(
    "source",
    [
        "ok = hmac.compare_digest(given, client.secret)",
        "ok = error.code == 'x'",
        "query = select(Row).where(RecoveryCodeRow.digest == digest)",
        "ok = told.total_tokens == prompt",
    ],
)
def test_harmless_comparisons_are_not_reported(source: str) -> None:
    assert not list(comparisons(f"def f():\n    {source}"))
