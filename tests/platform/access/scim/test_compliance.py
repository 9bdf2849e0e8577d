"""An independent compliance checker for SCIM, with a real server process."""

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server
from tests.support.server import GatehouseServer


def test_the_checker_reports_no_violation() -> None:
    with GatehouseServer() as server:
        # The trial key is not used, because the log contains it intentionally.
        key = server.new_key("admin")
        admin = {"Authorization": f"Bearer {key}"}
        created = httpx2.post(f"{server.url}/api/admin/scim/token", json={"description": "checker"}, headers=admin)
        assert created.status_code == 201, created.text
        token = {"Authorization": f"Bearer {created.json()['token']}"}
        with httpx2.Client(base_url=f"{server.url}/api/scim/v2", headers=token, timeout=60) as client:
            results = check_server(SyncSCIMClient(client))
    wrong = [
        f"{result.title}: {result.reason}"
        for result in results
        if result.status not in {Status.SUCCESS, Status.SKIPPED}
    ]
    assert not wrong, "\n".join(wrong)
    assert len([result for result in results if result.status is Status.SUCCESS]) > 100
