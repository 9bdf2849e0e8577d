"""Runs the commands of docs/moving-to-the-cloud.md one after the other, with a platform, a portal and an outpost as
processes of their own."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.leaks import LEAK_DETECTOR
from tests.support.outpost_server import ADMIN_TOKEN
from tests.support.portal_server import PortalServer, url_of
from tests.support.ports import free_port
from tests.support.registered import RegisteredOutpost
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.passwords import hash_now
from gatehouse.platform.changes.change import DEFAULT_TENANT

PAGE = Path(__file__).parents[3] / "docs/moving-to-the-cloud.md"
#: The first block sets variables, which this test sets itself.
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1:]
PASSWORD = "the mover's long password"
ADMIN = "/api/admin"
#: The tenant and the outpost have the configuration of an organization before it moves.
BEFORE: list[tuple[str, dict[str, Any]]] = [
    (f"{ADMIN}/dlp-rules/", {"detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card",
                             "action_tier": "block"}),
    (f"{ADMIN}/dlp-rules/custom-patterns", {"name": "Employee numbers", "entity_type": "employee_id",
                                            "pattern": "EMP-[0-9]{6}", "action_tier": "redact"}),
    (f"{ADMIN}/dlp-rules/suppressions", {"pattern_id": "email"}),
    (f"{ADMIN}/content-filters/", {"name": "Projects", "filter_type": "keyword_block", "scope": "org", "priority": 1,
                                   "config": {"keywords": ["Project Falcon"]}}),
    (f"{ADMIN}/compliance-bundles", {"name": "Card data", "regulatory_framework": "PCI-DSS", "version": "4.0.1",
                                     "seed_rule_mappings": ["credit_card"]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    port = free_port()
    with GatehouseServer(env={"PORTAL_PUBLIC_URL": url_of(port)}) as platform, PortalServer(platform, port) as running:
        yield running


def until(holds: Callable[[], object], *, patience: float = 60) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def outpost(portal: PortalServer) -> Iterator[RegisteredOutpost]:
    """Yields an outpost of an organization with rules and filters of its own, and with the sandbox's models."""
    platform = portal.platform
    org_id, _ = portal.new_org(tenant_id=str(DEFAULT_TENANT))
    with httpx2.Client(base_url=platform.url, headers={"X-API-Key": platform.key}, timeout=60) as admin:
        flag = admin.patch("/api/v1/admin/org/feature-flags/outpost_enabled", json={"enabled": True})
        assert flag.status_code == 200, flag.text
        for path, body in BEFORE:
            created = admin.post(path, json=body)
            assert created.status_code == 201, (path, created.text)
    registration = portal.register(org_id)
    with RegisteredOutpost(platform, registration, CLOUD_PORTAL_URL=portal.url) as running:
        with running.admin() as operator:
            until(lambda: len(operator.get("/admin/config/export").json().get("content_filters", [])) == 1)
        yield running


def environment(portal: PortalServer, outpost: RegisteredOutpost, home: Path) -> dict[str, str]:
    """Returns the variables that the first block of the page sets. The cloud is another tenant of the same platform."""
    platform, email = portal.platform, f"ada-{uuid4().hex[:8]}@example.test"
    org_id, _ = portal.new_org(contact_email=email)
    platform.sql("UPDATE users SET password_hash = %s WHERE email = %s", [hash_now(PASSWORD), email])
    platform.sql("INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, 'sandbox', 'S', 'sandbox')", [org_id])
    platform.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (%s, %s, 'sandbox', 'echo')",
        [new_id(), org_id],
    )
    platform.touch("policy", org_id)
    token = portal.admin.post(f"/v1/orgs/{org_id}/tokens", json={}).json()["token"]
    LEAK_DETECTOR.add_secret(token, "an organization's token")
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", "OUTPOST": outpost.url,
        "OUTPOST_ADMIN": outpost.admin_url, "OUTPOST_ADMIN_TOKEN": ADMIN_TOKEN, "OUTPOST_KEY": platform.key,
        "PORTAL": portal.url, "CLOUD": platform.url, "ORG": str(org_id), "ORG_TOKEN": token, "EMAIL": email,
        "PASSWORD": PASSWORD, "MODEL": "sandbox/echo",
    }  # fmt: skip


def test_the_documented_steps_move_an_organization_to_the_cloud_and_back(
    portal: PortalServer, outpost: RegisteredOutpost, tmp_path: Path
) -> None:
    script = "set -euo pipefail\n" + "\n".join(f"{block}\necho '== {at}'" for at, block in enumerate(BLOCKS))
    process = subprocess.run(
        ["bash", "-c", script], env=environment(portal, outpost, tmp_path), cwd=tmp_path, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, (process.stdout, process.stderr)

    exported = json.loads((tmp_path / "outpost-config.json").read_text())
    assert (exported["version"], len(exported["patterns"])) == ("1.0", 75)
    would_be, imported = (json.loads((tmp_path / name).read_text()) for name in ("would-be.json", "imported.json"))
    assert (would_be.pop("dry_run"), imported.pop("dry_run")) == (True, False)
    assert would_be == imported
    assert imported["standard_patterns"] == 75
    assert {(item["part"], item["name"]) for item in imported["imported"]} == {
        ("dlp_rules", "Cards"),
        ("custom_patterns", "Employee numbers"),
        ("suppressions", "email"),
        ("content_filters", "Projects"),
        ("compliance_bundles", "Card data"),
    }
    # Both apply the rules of the organization.
    verdicts = [json.loads(line) for line in (tmp_path / "cloud.txt").read_text().splitlines()]
    assert [verdict["action"] for verdict in verdicts] == ["ALLOW", "BLOCK", "ALLOW", "REDACT", "BLOCK"], verdicts
    assert "the same verdicts" in process.stdout
    assert "Hello, cloud" in process.stdout
    assert "Hello again" in process.stdout
    assert (tmp_path / "outpost-audit.jsonl").read_text().count("\n") >= 1
    assert int(process.stdout.split("== 8")[1].split()[0]) >= 1


def test_the_page_states_the_length_of_the_parallel_run(portal: PortalServer) -> None:
    text = PAGE.read_text("utf-8")
    assert all(item in text for item in ("48 to 72 hours", "14 days", "76 patterns", "stay in the cloud"))
