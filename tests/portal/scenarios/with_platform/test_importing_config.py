"""The config import of the portal: accepted files, refused files, and the result on the platform
(docs/moving-to-the-cloud.md)."""

import json
from typing import Any
from uuid import uuid4

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


async def test_a_file_is_imported_into_the_organizations_tenant(
    portal: RunningPortal, server: GatehouseServer, new_org: Provisioned
) -> None:
    answer = await sent(new_org, CONFIG)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body.keys() == {"dry_run", "standard_patterns", "imported", "skipped", "missing_patterns", "errors"}
    assert (body["standard_patterns"], body["missing_patterns"]) == (76, ["acme-contract"])
    assert [item["name"] for item in body["imported"]] == ["Employee numbers", "Cards", "email"]
    assert [error["where"] for error in body["errors"]] == ["custom_patterns[1].pattern"]
    assert [item["part"] for item in body["skipped"]] == ["overrides"]
    assert arrived(server, new_org) == {"Employee numbers", "Cards"}
    # The imported rule applies to a call of the gateway with the owner's key.
    scanned = httpx2.post(
        f"{server.url}/v1/scan", json={"text": "EMP-123456"}, headers={"Authorization": f"Bearer {new_org.key}"}
    )
    assert scanned.json()["action"] == "REDACT", scanned.text
    (row,) = portal.audit(new_org.id, "config.imported")
    assert row["details"] == {"imported": 3, "skipped": 1, "missing_patterns": ["acme-contract"], "errors": 1}
    repeated = (await sent(new_org, CONFIG)).json()
    assert repeated["imported"] == []


@pytest.mark.parametrize("how", ["form", "query"])
async def test_a_dry_run_stores_nothing(
    portal: RunningPortal, server: GatehouseServer, new_org: Provisioned, how: str
) -> None:
    if how == "form":
        answer = await sent(new_org, CONFIG, dry_run="true")
    else:
        answer = await new_org.client.post(
            f"{new_org.path}/config-import?dry_run=true", files={"file": ("x.json", json.dumps(CONFIG).encode())}
        )
    assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
    assert len(answer.json()["imported"]) == 3
    assert arrived(server, new_org) == set()
    assert portal.audit(new_org.id, "config.imported") == []


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"", 422, ("file", "not JSON")),
        (b'{\n  "version": "1.0",\n  oops\n}', 422, ("file", "line 3, column 3")),
        (b"\xff\xfe{}", 422, ("file",)),
        (b"[]", 422, ("file", "not an outpost's configuration")),
        (b'{"a": 1}', 422, ("file", "not an outpost's configuration")),
        (b"[" * 100_000, 422, ("file",)),
        (b'{"version": "2.0"}', 422, ("file: is not valid at version: must be 1.0, or a later one of 1.x",)),
        (b'{"version": "1.0", "dlp_rules": {}}', 422, ("file: is not valid at dlp_rules: ",)),
        (b'{"version": "1.0", "x": "' + b" " * 1024 * 1024 + b'"}', 413, ("file", "1048576")),
        (b" " * 3 * 1024 * 1024, 413, ("bytes",)),
    ],
    ids=["empty", "malformed", "no text", "a list", "something else", "deep", "later", "wrong part", "large", "huge"],
)
async def test_a_malformed_file_is_refused_with_the_position(
    shared_org: Provisioned, content: bytes, status: int, words: tuple[str, ...]
) -> None:
    answer = await sent(shared_org, content)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"] == {413: "request_too_large", 422: "validation_error"}[status]
    assert all(word in answer.json()["detail"] for word in words), answer.json()


async def test_a_byte_order_mark_is_accepted(shared_org: Provisioned) -> None:
    answer = await sent(shared_org, b'\xef\xbb\xbf{"version": "1.0"}')
    assert (answer.status_code, answer.json()["imported"]) == (200, [])


async def test_a_file_is_needed(shared_org: Provisioned) -> None:
    answer = await shared_org.client.post(f"{shared_org.path}/config-import", data={"dry_run": "true"})
    assert (answer.status_code, "file" in answer.json()["detail"]) == (422, True)


async def test_only_administrators_of_the_organization_import(
    portal: RunningPortal,
    town: Town,
    server: GatehouseServer,
    new_org: Provisioned,
    second_org: Provisioned,
    surfer: Surfer,
) -> None:
    person = town.person(new_org)
    town.join(new_org, person)
    await surfer.sign_in(person)
    assert (await sent(new_org, CONFIG, client=portal.anonymous)).status_code == 401
    assert (await sent(new_org, CONFIG, client=portal.client(str(surfer.cookie())))).status_code == 403
    assert (await sent(new_org, CONFIG, client=second_org.client)).status_code == 403
    assert arrived(server, new_org) == set()


async def test_an_organization_without_a_tenant_cannot_import(portal: RunningPortal, new_org: Provisioned) -> None:
    portal.sql("UPDATE organizations SET provisioning_status = 'provisioning' WHERE id = %s", [new_org.id])
    answer = await sent(new_org, CONFIG)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    portal.sql(
        "UPDATE organizations SET provisioning_status = 'active', tenant_id = %s WHERE id = %s", [uuid4(), new_org.id]
    )
    answer = await sent(new_org, CONFIG)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


async def test_nothing_is_imported_while_the_platform_is_unavailable(
    portal: RunningPortal, new_org: Provisioned
) -> None:
    settings = portal.host.settings.model_copy(update={"platform_url": "http://127.0.0.1:9"})
    async with RunningPortal.start(settings) as alone:
        token = (await portal.admin.post(f"{new_org.path}/tokens", json={})).json()["token"]
        answer = await sent(new_org, CONFIG, client=alone.client(token))
        assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")
        # The response may be lost after the platform has imported all parts.
        assert "nothing was imported" not in answer.json()["detail"]
        assert (await sent(new_org, CONFIG, client=alone.client(token), dry_run="true")).status_code == 503
    assert portal.audit(new_org.id, "config.imported") == []
    (row,) = portal.audit(new_org.id, "config.import_failed")
    assert "connect_failed" in str(row["details"])


# in the settings screen ----------------------------------------------------------------------------------------------


async def test_the_settings_screen_imports(server: GatehouseServer, new_org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(new_org.owner, path="/v1/auth/sso/login?redirect_uri=/settings")
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
        assert "3 imported, 1 skipped, 1 with errors. 76 built-in patterns were recognised." in text
        assert "acme-contract" in text
        assert "custom_patterns[1].pattern" in text
        assert bool(arrived(server, new_org)) == (not dry)


async def test_the_settings_screen_shows_what_is_wrong_with_a_file(shared_org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(shared_org.owner)
    surfer.page = await surfer.client.post(
        surfer.portal + "/settings/config-import",
        files={"file": ("x.json", b"<script>")},
        headers={"Origin": surfer.portal, "Accept": "text/html"},
    )
    assert (surfer.page.status_code, "The file is not JSON: line 1" in surfer.page.text) == (422, True)
    assert "<script>" not in surfer.page.text
