"""The credentials of MCP servers at an outpost: variables, credentials in the bundle, and what is missing."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.mcp_engine import server_record

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost.policy.mcp_credentials import McpCredentialMissing, McpSecrets
from gatehouse.outpost.policy.sealed_credentials import OpenedCredentials
from gatehouse.policy.mcp import mcp_client_key, mcp_environment_key, mcp_secret_key

SERVER = server_record("issue-tracker")
HEADER, CLIENT, ENVIRONMENT = (name(SERVER.id) for name in (mcp_secret_key, mcp_client_key, mcp_environment_key))
FINGERPRINT = "sha256:" + "0" * 64


def secrets(sent: dict[str, dict[str, str]] | None = None, **environment: str) -> McpSecrets:
    bundle = SimpleNamespace(mcp_servers=(SERVER,))
    in_force: Any = SimpleNamespace(bundle=bundle, credentials=OpenedCredentials(sent or {}))
    return McpSecrets(SimpleNamespace(in_force=in_force), environment)  # type: ignore[arg-type]


def test_variables_have_precedence_over_the_bundle() -> None:
    sent = {HEADER: {"X-Key": "sent"}, CLIENT: {"client_secret": "sent"}, ENVIRONMENT: {"TOKEN": "sent"}}
    opened = secrets(
        sent, MCP_SERVER_ISSUE_TRACKER_HEADER="X-Key:  own value", MCP_SERVER_ISSUE_TRACKER_CLIENT_SECRET="own"
    )
    assert opened.open(HEADER, FINGERPRINT) == {"X-Key": "own value"}
    assert opened.open(CLIENT, FINGERPRINT) == {"client_secret": "own"}
    assert opened.open(ENVIRONMENT, FINGERPRINT) == {"TOKEN": "sent"}
    for key in (HEADER, CLIENT):
        assert secrets(sent).open(key, FINGERPRINT) == sent[key]


def test_a_missing_credential_is_refused_with_the_name_of_its_variable() -> None:
    opened = secrets(MCP_SERVER_ISSUE_HEADER="X-Key: another server's", MCP_SERVER_TRACKER_CLIENT_SECRET="x")
    with pytest.raises(McpCredentialMissing, match="MCP_SERVER_ISSUE_TRACKER_HEADER"):
        opened.open(HEADER, FINGERPRINT)
    with pytest.raises(McpCredentialMissing, match="MCP_SERVER_ISSUE_TRACKER_CLIENT_SECRET"):
        opened.open(CLIENT, FINGERPRINT)


def test_a_server_without_a_credential_needs_none() -> None:
    assert secrets().open(HEADER, None) == {}
    # The file of commands may contain the values of variables that are not sent.
    assert secrets().open(ENVIRONMENT, FINGERPRINT) == {}


@pytest.mark.parametrize(
    "value", ["", "no colon", "Name:", "Na me: x", "Name: a\r\nOther: b", "Name: ä", "Host: a", "MCP-Session-Id: a"]
)
def test_a_variable_that_is_no_header_is_refused(value: str) -> None:
    with pytest.raises(BadSettings, match="MCP_SERVER_A_HEADER"):
        secrets(MCP_SERVER_A_HEADER=value)
