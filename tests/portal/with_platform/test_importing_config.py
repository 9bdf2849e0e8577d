"""Config import at the portal (decisions 8, Config import): what it takes, what it refuses, and that it arrives."""

import json
from typing import Any

import httpx2
import pytest
from tests.support.portal import RunningPortal
from tests.support.server import GatehouseServer
from tests.support.surfer import Surfer
from tests.support.town import Provisioned, Town

from gatehouse.detection.catalog import BUILT_IN

PATTERN = {
    "name": "Employee numbers", "detector_type": "regex", "entity_type": "employee_id", "action": "redact",
    "pattern": "EMP-[0-9]{6}",
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "version": "1.0",
    "patterns": [*(pattern.id for pattern in BUILT_IN), "acme-contract"],
    "dlp_rules": [{"name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block"}],
    "custom_patterns": [PATTERN, {**PATTERN, "name": "Broken", "pattern": "("}],
    "suppressions": ["email"],
    "overrides": {"disabled": {"openai": ["gpt-4o"]}},
}


async def sent(org: Provisioned, content: Any, /, *, client: httpx2.AsyncClient | None = None, **form: str) -> Any:
    file = content if isinstance(content, bytes) else json.dumps(content).encode()
    return await (client or org.client).post(
        f"{org.path}/config-import", files={"file": ("outpost-config.json", file)}, data=form
    )


def arrived(server: GatehouseServer, org: Provisioned) -> set[str]:
    rules = server.sql("SELECT detector_name FROM dlp_rules WHERE tenant_id = %s", [org.id])
    patterns = server.sql("SELECT name FROM dlp_custom_patterns WHERE tenant_id = %s", [org.id])
    return {name for (name,) in (*rules, *patterns)}


async def test_a_file_arrives_in_the_organizations_tenant(
    portal: RunningPortal, server: GatehouseServer, org: Provisioned
) -> None:
    answer = await sent(org, CONFIG)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told.keys() == {"dry_run", "standard_patterns", "imported", "skipped", "missing_patterns", "errors"}
    assert (told["standard_patterns"], told["missing_patterns"]) == (76, ["acme-contract"])
    assert [each["name"] for each in told["imported"]] == ["Employee numbers", "Cards", "email"]
    assert [each["where"] for each in told["errors"]] == ["custom_patterns[1].pattern"]
    assert [each["part"] for each in told["skipped"]] == ["overrides"]
    assert arrived(server, org) == {"Employee numbers", "Cards"}
    # In force: by the owner's key, at the gateway.
    scanned = httpx2.post(
        f"{server.url}/v1/scan", json={"text": "EMP-123456"}, headers={"Authorization": f"Bearer {org.key}"}
    )
    assert scanned.json()["action"] == "REDACT", scanned.text
    (row,) = portal.audit(org.id, "config.imported")
    assert row["details"] == {"imported": 3, "skipped": 1, "missing_patterns": ["acme-contract"], "errors": 1}
    again = (await sent(org, CONFIG)).json()
    assert again["imported"] == []


@pytest.mark.parametrize("how", ["form", "query"])
async def test_a_dry_run_leaves_nothing(
    portal: RunningPortal, server: GatehouseServer, org: Provisioned, how: str
) -> None:
    if how == "form":
        answer = await sent(org, CONFIG, dry_run="true")
    else:
        answer = await org.client.post(
            f"{org.path}/config-import?dry_run=true", files={"file": ("x.json", json.dumps(CONFIG).encode())}
        )
    assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
    assert len(answer.json()["imported"]) == 3
    assert arrived(server, org) == set()
    assert portal.audit(org.id, "config.imported") == []


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"", 422, ("file", "no JSON")),
        (b'{\n  "version": "1.0",\n  oops\n}', 422, ("file", "line 3, column 3")),
        (b"\xff\xfe{}", 422, ("file",)),
        (b"[]", 422, ("file", "no configuration of an outpost")),
        (b'{"a": 1}', 422, ("file", "no configuration of an outpost")),
        (b"[" * 100_000, 422, ("file",)),
        (b'{"version": "2.0"}', 422, ("file", "version")),
        (b'{"version": "1.0", "dlp_rules": {}}', 422, ("file", "dlp_rules")),
        (b'{"version": "1.0", "x": "' + b" " * 1024 * 1024 + b'"}', 413, ("file", "1048576")),
        (b" " * 3 * 1024 * 1024, 413, ("bytes",)),
    ],
    ids=["empty", "malformed", "no text", "a list", "something else", "deep", "later", "wrong part", "large", "huge"],
)
async def test_a_file_that_is_none_is_refused_with_the_place(
    org: Provisioned, content: bytes, status: int, words: tuple[str, ...]
) -> None:
    answer = await sent(org, content)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"] == {413: "request_too_large", 422: "validation_error"}[status]
    assert all(word in answer.json()["detail"] for word in words), answer.json()


async def test_a_file_is_needed(org: Provisioned) -> None:
    answer = await org.client.post(f"{org.path}/config-import", data={"dry_run": "true"})
    assert (answer.status_code, "file" in answer.json()["detail"]) == (422, True)


async def test_administrators_of_the_organization_alone_import(
    portal: RunningPortal, town: Town, server: GatehouseServer, org: Provisioned, surfer: Surfer
) -> None:
    who = town.person(org)
    town.join(org, who)
    await surfer.sign_in(who)
    other = await town.organization()
    assert (await sent(org, CONFIG, client=portal.anonymous)).status_code == 401
    assert (await sent(org, CONFIG, client=portal.client(str(surfer.cookie())))).status_code == 403
    assert (await sent(org, CONFIG, client=other.client)).status_code == 403
    assert arrived(server, org) == set()


async def test_an_organization_that_is_not_on_the_platform_has_nowhere_to_import_to(
    portal: RunningPortal, org: Provisioned
) -> None:
    portal.sql("UPDATE organizations SET provisioning_status = 'provisioning' WHERE id = %s", [org.id])
    answer = await sent(org, CONFIG)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


async def test_while_the_platform_is_away_nothing_is_imported(portal: RunningPortal, org: Provisioned) -> None:
    settings = portal.host.settings.model_copy(update={"platform_url": "http://127.0.0.1:9"})
    async with RunningPortal.start(settings) as alone:
        token = (await portal.admin.post(f"{org.path}/tokens", json={})).json()["token"]
        answer = await sent(org, CONFIG, client=alone.client(token))
        assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")
    assert portal.audit(org.id, "config.imported") == []


# in the settings screen ----------------------------------------------------------------------------------------------


async def test_the_settings_screen_imports(server: GatehouseServer, org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(org.owner, path="/v1/auth/sso/login?redirect_uri=/settings")
    files = {"file": ("outpost-config.json", json.dumps(CONFIG).encode(), "application/json")}
    form = surfer.form("/settings/config-import")
    assert form.attributes["enctype"] == "multipart/form-data"
    form_fields = form.fields
    assert form_fields["dry_run"] == "true"
    for dry in (True, False):
        surfer.page = await surfer.client.post(
            surfer.portal + "/settings/config-import",
            files=files,
            data={"dry_run": "true"} if dry else {},
            headers={"Origin": surfer.portal, "Accept": "text/html"},
        )
        assert surfer.page.status_code == 200
        text = " ".join(surfer.page.text.split())
        assert ("This would be done" in text) == dry
        assert "3 imported, 1 skipped, 1 with errors. 76 standard patterns were recognised." in text
        assert "acme-contract" in text
        assert "custom_patterns[1].pattern" in text
        assert bool(arrived(server, org)) == (not dry)


async def test_the_settings_screen_says_what_is_wrong_with_a_file(org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(org.owner)
    surfer.page = await surfer.client.post(
        surfer.portal + "/settings/config-import",
        files={"file": ("x.json", b"<script>")},
        headers={"Origin": surfer.portal, "Accept": "text/html"},
    )
    assert (surfer.page.status_code, "The file is no JSON: line 1" in surfer.page.text) == (422, True)
    assert "<script>" not in surfer.page.text
