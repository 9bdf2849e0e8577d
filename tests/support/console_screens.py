"""The screens of the console with one row of everything, for tests and measurements of all screens."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

AriaRole = Literal["button", "combobox", "link", "textbox"]

ROUTER: Final = Path(__file__).parents[2] / "console" / "src" / "router.tsx"

#: A path of the router. A parameter begins with `$`.
_PATH: Final = re.compile(r'\n  path: "([^"]+)"')


def paths_of_router() -> list[str]:
    """Return the paths of all screens, as the console's router declares them."""
    return _PATH.findall(ROUTER.read_text())


def fill(server: GatehouseServer, admin: httpx2.Client) -> dict[str, str]:
    """Create one row of everything that the screens show, as an administrator. Returns the paths of the screens with a
    parameter, by their paths in the router."""

    def post(path: str, **body: Any) -> Any:
        answer = admin.post(path, json=body)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    group = post("/api/admin/groups", name="Engineering")["id"]
    post("/api/admin/users", email="ada@example.test", display_name="Ada Lovelace", password="a long password of Ada")
    post("/api/admin/models/catalog/", provider="sandbox", model_id="tokens-7-3", access="restricted")
    post(f"/api/admin/groups/{group}/model-access", model_id="sandbox/tokens-7-3", access_type="ALLOW")
    post("/api/admin/budgets", scope_type="group", scope_id=group, period="month", limit_usd=250)
    post("/api/admin/dlp-rules/", **_DLP_RULE)
    post("/api/admin/dlp-rules/custom-patterns", **_PATTERN)
    post("/api/admin/dlp-rules/suppressions", pattern_id="email")
    post("/api/admin/content-filters/", **_FILTER)
    post("/api/admin/policies", name="Small models", condition="true", action="LOG")
    post("/api/admin/compliance-bundles", **_BUNDLE)
    post("/api/admin/cost-routing/policies", name="Cheapest", strategy="cost_optimized", enabled=False)
    post("/api/v1/admin/model-aliases", **_ALIAS)
    post("/api/admin/models", provider="acme", model_id="registered")
    post("/api/admin/oauth-clients/", name="Batch jobs", scopes=["chat:write"])
    post("/api/admin/webhooks/", **_WEBHOOK)
    post("/api/alerts", **_ALERT)
    post("/api/admin/scim/token", description="Directory")
    add_mcp_server(server, post("/api/v1/admin/mcp/servers", **_MCP_SERVER)["id"], group, post)
    add_connection(server, admin, post)
    post("/api/access-requests", kind="model", model="sandbox/tokens-7-3", reason="For the tests.")
    key = post("/api/auth/api-keys", description="laptop")["api_key"]
    conversation = post("/api/conversations", title="Gates of Rome", model="sandbox/echo")["id"]
    post(f"/api/conversations/{conversation}/messages", content="Which **gates** has Rome?")
    call = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "My card is 4242 4242 4242 4242."}]}
    for _ in range(3):
        answer = httpx2.post(
            f"{server.url}/v1/chat/completions", json=call, headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
        assert answer.is_success, answer.text
    return {"/chat/$conversationId": f"/chat/{conversation}"}


def add_mcp_server(server: GatehouseServer, server_id: str, group: str, post: Callable[..., Any]) -> None:
    """Add an approved tool, a tool that waits for a decision, and an access rule, as if the server had been read."""
    for name, status in (("forecast", "approved"), ("warn", "quarantined")):
        tool_id = new_id()
        definition = json.dumps({"description": "The weather.", "inputSchema": {"type": "object"}, "name": name})
        server.sql(
            "INSERT INTO mcp_tools (id, tenant_id, server_id, name, status, definition, hash, approved_definition,"
            " approved_hash) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [tool_id, DEFAULT_TENANT, server_id, name, status, definition, _HASH, definition, _HASH],
        )
        server.touch("mcp_switch", tool_id)
    read = "UPDATE mcp_servers SET revision = '2026-07-28', refreshed_at = now() WHERE id = %s"
    server.sql(read, [server_id])
    rule = {"subject_type": "group", "subject_id": group, "access_type": "ALLOW"}
    post(f"/api/v1/admin/mcp/servers/{server_id}/access", **rule)


def add_connection(server: GatehouseServer, admin: httpx2.Client, post: Callable[..., Any]) -> None:
    """Add a server that needs each user's account, and accounts of administrators, as if they had been connected."""
    server_id = post("/api/v1/admin/mcp/servers", name="tickets", url="https://8.8.8.8/mcp", access="open")["id"]
    client = {
        "client_id": "gatehouse", "scope": "tickets:read", "issuer": "https://8.8.8.8", "authorization_url": None,
        "token_url": None, "revocation_url": None, "client_authentication": "client_secret_basic",
        "sends_resource": True,
    }  # fmt: skip
    update = "UPDATE mcp_servers SET revision = '2026-07-28', refreshed_at = now(), user_oauth = %s WHERE id = %s"
    server.sql(update, [json.dumps(client), server_id])
    server.sql(
        "INSERT INTO mcp_tools (id, tenant_id, server_id, name, status, definition, hash, approved_definition,"
        " approved_hash) VALUES (%s, %s, %s, 'search', 'approved', '{}', %s, '{}', %s)",
        [new_id(), DEFAULT_TENANT, server_id, _HASH, _HASH],
    )
    server.sql(
        "INSERT INTO mcp_connections (id, tenant_id, server_id, user_id, server_url, client_id, issuer, token_url,"
        " sealed_tokens) SELECT gen_random_uuid(), tenant_id, %s, id, 'https://8.8.8.8/mcp', 'gatehouse',"
        " 'https://8.8.8.8', 'https://8.8.8.8/token', 'sealed' FROM users WHERE tenant_id = %s AND role = 'admin'",
        [server_id, DEFAULT_TENANT],
    )
    # A change of the server, after which the workers load its policy again.
    admin.patch(f"/api/v1/admin/mcp/servers/{server_id}", json={"description": "Tickets."}).raise_for_status()


_HASH: Final = "sha256:" + "0" * 64
_MCP_SERVER: Final = {"name": "weather", "url": "https://8.8.8.8/mcp", "access": "open"}
_DLP_RULE: Final = {
    "detector_name": "Project names", "detector_type": "regex", "entity_type": "project", "action_tier": "redact",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip
_PATTERN: Final = {"name": "Tickets", "pattern": "TCK-[0-9]+", "entity_type": "ticket", "action_tier": "log_only"}
_FILTER: Final = {
    "name": "Words", "filter_type": "keyword_block", "config": {"keywords": ["forbidden"]}, "scope": "org",
    "priority": 1,
}  # fmt: skip
_BUNDLE: Final = {
    "name": "Privacy", "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"],
}  # fmt: skip
_ALIAS: Final = {
    "name": "fast", "deployments": [{"provider": "sandbox", "model_id": "echo"}],
}  # fmt: skip
_WEBHOOK: Final = {
    "name": "Pager", "url": "https://hooks.example.org/gatehouse", "events": ["quota_exceeded"],
    "secret": "a secret of the test", "enabled": False,
}  # fmt: skip
_ALERT: Final = {
    "name": "Costs", "metric_type": "cost", "threshold": 1, "comparison": "gt", "window_minutes": 5, "enabled": False,
}  # fmt: skip


@dataclass(frozen=True)
class Use:
    """An action of an administrator on a screen by keyboard: move to the control and press the keys. If `item` is set,
    the keys open a menu in which it is chosen."""

    #: a part of the control's accessible name
    control: str
    role: AriaRole = "button"
    item: str | None = None
    text: str = ""
    keys: tuple[str, ...] = ("Enter",)
    #: what the action opens: `dialog`, `detail` (a panel next to the list), or a part of the new address
    opens: str = "dialog"


def _menu(row: str, item: str) -> Use:
    return Use(f"Actions for {row}", item=item)


def _link(name: str, address: str) -> Use:
    return Use(name, role="link", opens=address)


#: The action on each screen, by the screen's path in the router.
SCREENS: Final[dict[str, tuple[Use, ...]]] = {
    "/": (_link("30 days", "period=month"), Use("Request to echo", opens="record=")),
    "/chat": (Use("Message", role="textbox", text="Which gates has Rome?", opens="/chat/"),),
    "/chat/$conversationId": (Use("Share"), _menu("the conversation", "Rename"), _menu("the conversation", "Delete")),
    "/requests": (Use("Request to echo", opens="detail"),),
    "/usage": (_link("7 days", "period=week"), Use("Ask for a model", role="link", opens="access-requests")),
    "/spend": (_link("Groups", "by=group"),),
    "/audit": (Use("Verify chain"), Use("Export"), Use(", login.succeeded")),
    "/approvals": (_link("Denied", "status="), _link("Access", "view=access")),
    "/kill-switches": (Use("Stop provider sandbox"),),
    "/dlp-rules": (Use("New rule"), Use("Open the versions of Project names"), _menu("Project names", "Edit")),
    "/dlp-rules/suppressions": (Use("Suppress a pattern"), Use("End the suppression of E-mail address")),
    "/dlp-rules/patterns": (Use("New pattern"), _menu("Tickets", "Edit")),
    "/dlp-rules/replay": (Use("Change…"),),
    "/content-filters": (Use("New filter"), _menu("Words", "Edit"), _menu("Words", "Delete")),
    "/policies": (Use("New policy"), _menu("Small models", "Edit")),
    "/compliance": (
        Use("Import"), Use("New bundle"), Use("Details of “Privacy”"), _menu("Privacy", "Edit"),
        _menu("Privacy", "Archive"),
    ),
    "/providers": (Use("Add provider"), _menu("Sandbox", "Remove")),
    "/models": (Use("Discover"), Use("Add your own endpoint"), Use("Add model"), _menu("tokens-7-3", "Edit")),
    "/model-aliases": (Use("New alias"), Use("Deployments of “fast”"), _menu("fast", "Edit")),
    "/routing": (Use("New policy"), _menu("Cheapest", "Edit")),
    "/registry": (
        Use("Discover"), Use("Register model"), Use("Evidence of acme/registered"), _menu("acme/registered", "Edit"),
    ),
    "/keys": (Use("Create key"), _menu("laptop", "Edit"), _menu("laptop", "Delete")),
    "/access-requests": (Use("Ask for a higher limit"), Use("Ask for a model"), Use("Withdraw")),
    "/users": (
        Use("New user"), Use("Sessions of Ada"), _menu("Ada Lovelace", "Edit"), _menu("Ada Lovelace", "Delete"),
        _menu("Ada Lovelace", "Reset second factors"),
    ),
    "/groups": (Use("New group"), Use("Members of “Engineering”"), _menu("Engineering", "Edit")),
    "/access": (Use("sandbox/echo for Engineering", role="combobox", keys=("ArrowDown",), opens="access"),),
    "/budgets": (Use("New budget"), _menu("Engineering, month", "Edit")),
    "/mcp-servers": (Use("New server"), Use("Details of weather"), Use("Stop weather"), _menu("weather", "Edit")),
    "/mcp-servers/tools": (Use("Open forecast of weather"), Use("Open warn of weather")),
    "/mcp-servers/access": (Use("Add rule"),),
    "/mcp-servers/calls": (_link("Servers", "/mcp-servers"),),
    "/tools": (_link("API keys", "/keys"),),
    "/connections": (Use("Disconnect tickets"),),
    "/webhooks": (Use("New webhook"), Use("Deliveries of “Pager”"), _menu("Pager", "Edit")),
    "/alerts": (Use("New alert"), Use("History of “Costs”"), _menu("Costs", "Edit")),
    "/organization": (Use("Add domain"),),
    "/security": (Use("Change password"), Use("Set up an authenticator app")),
    "/start": (Use("Add a provider"), Use("Create key", opens="start")),
    "/sign-in": (Use("Add identity provider"), Use("New token"), _menu("Directory", "Revoke")),
    "/oauth-clients": (Use("New client"), _menu("Batch jobs", "Edit"), _menu("Batch jobs", "New secret")),
    "/system": (Use("Start maintenance"),),
    "/siem": (Use("Set up a receiver"),),
    "/retention": (Use("Edit"), Use("Set a hold")),
    "/outposts": (Use("Send credentials"),),
}  # fmt: skip

#: The screens of users without further rights.
SCREENS_OF_USERS: Final = (
    "/",
    "/chat",
    "/tools",
    "/requests",
    "/usage",
    "/keys",
    "/access-requests",
    "/connections",
    "/start",
    "/security",
)


@dataclass(frozen=True)
class Task:
    """The main task of a screen: create a row, edit it, and delete it."""

    #: the button that opens the form
    new: str
    #: the labels of the form's fields, with what is entered
    fields: dict[str, str]
    #: the row's name in the label of its menu
    row: str
    #: a field, with what is entered in it later
    edited: tuple[str, str] | None = None
    create: str = "Create"
    #: the item of the menu, and the button of the question
    remove: str = "Delete…"
    removed: str = "Delete"
    #: whether a dialog shows a secret or a link after the creation
    is_shown_once: bool = False


_CHECKED: Final = ""
_BRIEF: Final = {"Name": "Short-lived"}
_PATTERN_FIELDS: Final = {**_BRIEF, "Entity type": "project", "Pattern": "Brief-[0-9]+"}
_DESCRIBED: Final = ("Description", "For a day")

#: The tasks by the path of their screens in the router.
TASKS: Final[dict[str, Task]] = {
    "/groups": Task("New group", _BRIEF, "Short-lived", _DESCRIBED),
    "/keys": Task("Create key", _BRIEF, "Short-lived", create="Create key", removed="Delete key", is_shown_once=True),
    "/users": Task(
        "New user", {"E-mail address": "grace@example.test", "Name": "Grace Hopper"}, "Grace Hopper",
        ("Role", "Auditor"), create="Create user", removed="Delete user", is_shown_once=True,
    ),
    "/providers": Task(
        "Add provider",
        {
            "Provider": "Any server with OpenAI's API", "Name in model ids": "in-house",
            "Base URL": "https://1.1.1.1/v1", "API key": "a key of the test",
        },
        "in-house", create="Add provider", remove="Remove…", removed="Remove",
    ),
    "/models": Task(
        "Add model", {"Provider": "Sandbox", "Model id": "short-lived", "Name": "Short-lived"}, "Short-lived",
        ("Context window (tokens)", "8000"), create="Add model", remove="Remove…", removed="Remove model",
    ),
    "/budgets": Task(
        "New budget", {"Limit in dollars": "5"}, "Whole organization, month",
        ("Over the limit", "Only send the event “Limit reached”"),
    ),
    "/webhooks": Task(
        "New webhook", {**_BRIEF, "URL": "https://hooks.example.org/brief", "Limit reached": _CHECKED}, "Short-lived",
        ("URL", "https://hooks.example.org/short"), is_shown_once=True,
    ),
    "/alerts": Task("New alert", {**_BRIEF, "Threshold": "1000"}, "Short-lived", ("Metric", "Error rate")),
    "/dlp-rules": Task(
        "New rule", _PATTERN_FIELDS, "Short-lived", ("Action", "Block"),
    ),
    "/dlp-rules/patterns": Task(
        "New pattern", _PATTERN_FIELDS, "Short-lived", ("Action", "Block"),
    ),
    "/content-filters": Task("New filter", {**_BRIEF, "Keywords": "brief"}, "Short-lived", _DESCRIBED),
    "/policies": Task("New policy", {**_BRIEF, "Condition": "true"}, "Short-lived", _DESCRIBED),
    "/compliance": Task("New bundle", {**_BRIEF, "Version": "1", "iban": _CHECKED}, "Short-lived", _DESCRIBED),
    "/model-aliases": Task(
        "New alias", {"Name": "short-lived", "Model": "sandbox/echo"}, "short-lived", _DESCRIBED,
    ),
    "/routing": Task("New policy", _BRIEF, "Short-lived", _DESCRIBED),
    "/registry": Task(
        "Register model", {"Model": "acme/short-lived"}, "acme/short-lived", ("Owner", "Ada"), create="Register model",
    ),
    "/mcp-servers": Task(
        "New server", {"Name": "short-lived", "URL": "https://8.8.8.8/brief"}, "short-lived",
        ("Timeout in milliseconds", "1500"),
    ),
    "/oauth-clients": Task(
        "New client", _BRIEF, "Short-lived", ("A token is valid for (minutes)", "5"), is_shown_once=True,
    ),
}  # fmt: skip
