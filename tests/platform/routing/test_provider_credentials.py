"""Several credentials of one provider: their endpoints, and calls while one is rotated (docs/providers.md)."""

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import text
from tests.support.platform import RunningPlatform, Tenant
from tests.support.samples import drained
from tests.support.upstream import Connection, upstream

BASE = "/api/admin/providers"
PATH = f"{BASE}/mine/credentials"
CHAT = {"model": "mine/small", "messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}  # fmt: skip


class Vendor:
    """A server that accepts the keys in `valid`. `used` are the keys of the calls, in their order."""

    def __init__(self) -> None:
        self.valid = {"sk-first-4711", "sk-second-4711", "sk-third-4711"}
        self.used: list[str] = []
        self.limited: set[str] = set()

    async def behave(self, connection: Connection) -> None:
        key = connection.headers["authorization"].removeprefix("Bearer ")
        self.used.append(key)
        # Some calls are under way while the key is replaced or revoked.
        accepted, limited = key in self.valid, key in self.limited
        await asyncio.sleep(0.02)
        if not accepted:
            await connection.answer(b'{"error": {"message": "Incorrect API key provided."}}', status=401)
        elif limited:
            await connection.answer(b"{}", status=429, more="retry-after: 30\r\n")
        else:
            await connection.answer(json.dumps(COMPLETION).encode())

    def keys(self) -> set[str]:
        """Return the keys that were used since the last call."""
        used = set(self.used)
        self.used.clear()
        return used


@pytest.fixture
async def vendor(tenant: Tenant) -> Any:
    """The organization's provider `mine`, with the key `sk-first-4711`."""
    running = Vendor()
    async with upstream(running.behave) as server:
        body = {"base_url": f"{server.url}/v1", "api_key": "sk-first-4711"}
        await ok(tenant, "PUT", PATH, body)
        await ok(tenant, "PATCH", f"{BASE}/mine/config", {"max_retries": 0})
        await ok(tenant, "POST", "/api/admin/models/catalog/", {"provider": "mine", "model_id": "small"})
        yield running


async def ok(tenant: Tenant, method: str, path: str, body: Any = None, **headers: str) -> Any:
    answer = await tenant.admin.client.request(method, path, json=body, headers=headers)
    assert answer.status_code in {200, 201, 204}, answer.text
    return answer.json() if answer.content else None


async def listed(tenant: Tenant) -> list[tuple[str, str]]:
    credentials = (await tenant.auditor.client.get(PATH)).json()["credentials"]
    return [(entry["label"], entry["state"]) for entry in credentials]


async def ask(tenant: Tenant, count: int = 1) -> list[int]:
    answers = [await tenant.user.client.post("/v1/chat/completions", json=CHAT) for _ in range(count)]
    return [answer.status_code for answer in answers]


class Load:
    """Eight clients that send calls one after the other until the block ends. `statuses` are those of the answers."""

    def __init__(self, tenant: Tenant) -> None:
        self.statuses: list[int] = []
        self._client = tenant.user.client
        self._tasks: list[asyncio.Task[None]] = []

    async def _ask(self) -> None:
        while True:
            answer = await self._client.post("/api/chat/completions", json=CHAT)
            self.statuses.append(answer.status_code)

    async def answers(self, count: int) -> None:
        """Wait for further answers."""
        until = len(self.statuses) + count
        async with asyncio.timeout(60):
            while len(self.statuses) < until:
                await asyncio.sleep(0.01)

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._ask()) for _ in range(8)]
        await self.answers(16)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.answers(16)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_credentials_are_added_listed_changed_and_removed(
    platform: RunningPlatform, tenant: Tenant, vendor: Vendor
) -> None:
    assert await listed(tenant) == [("default", "active")]
    added = await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    assert set(added) == {"label", "state", "created_at", "rotated_at", "updated_at"}
    assert (added["label"], added["state"]) == ("second", "active")
    assert await ask(tenant, 4) == [200] * 4
    assert vendor.keys() == {"sk-first-4711", "sk-second-4711"}
    await ok(tenant, "PATCH", f"{PATH}/default", {"state": "draining"})
    assert await listed(tenant) == [("default", "draining"), ("second", "active")]
    assert await ask(tenant, 3) == [200] * 3
    assert vendor.keys() == {"sk-second-4711"}
    await ok(tenant, "DELETE", f"{PATH}/default")
    assert await listed(tenant) == [("second", "active")]
    assert (await tenant.auditor.client.get(f"{BASE}/mine")).json()["credentials_configured"] is True
    await ok(tenant, "POST", f"{PATH}/second/rotate", {"api_key": "sk-third-4711"})
    assert await ask(tenant, 2) == [200] * 2
    assert vendor.keys() == {"sk-third-4711"}
    events = [
        (event["resource_id"], event["action"].partition("credential_")[2], event["details"])
        for action in ("added", "state_changed", "removed", "rotated")
        for event in await platform.audit(tenant, f"provider.credential_{action}")
    ]
    assert events == [
        ("mine", "added", {"credential": "second", "state": "active"}),
        ("mine", "state_changed", {"credential": "default", "state": "draining"}),
        ("mine", "removed", {"credential": "default"}),
        ("mine", "rotated", {"credential": "second", "fields": ["api_key"]}),
    ]
    await ok(tenant, "DELETE", PATH.removesuffix("/credentials"))
    assert platform.sql("SELECT count(*) FROM provider_credentials WHERE tenant_id = %s", [tenant.id]) == [(0,)]


async def test_secrets_are_stored_sealed_and_never_returned(
    platform: RunningPlatform, tenant: Tenant, vendor: Vendor
) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    await ok(tenant, "POST", f"{PATH}/second/rotate", {"api_key": "sk-third-4711"})
    answers = [await tenant.admin.client.get(path) for path in (PATH, f"{PATH}/second", f"{BASE}/mine")]
    # Random ids may contain the digits alone.
    assert all(key not in answer.text for answer in answers for key in ("second-4711", "third-4711"))
    for table in ("provider_credentials", "providers", "audit_events", "outbox"):
        assert platform.sql(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%%sk-%%-4711%%'", []) == [(0,)], (
            table
        )
    # A sealed text is bound to its row.
    await ok(tenant, "POST", PATH, {"label": "thief", "api_key": "sk-thief-0815"})
    platform.sql(
        "UPDATE provider_credentials SET sealed_secret = (SELECT sealed_secret FROM provider_credentials WHERE"
        " tenant_id = %s AND label = 'second') WHERE tenant_id = %s AND label = 'thief'",
        [tenant.id, tenant.id],
    )
    await ok(tenant, "PATCH", f"{PATH}/default", {"state": "disabled"})
    await ok(tenant, "PATCH", f"{PATH}/second", {"state": "draining"})
    vendor.keys()
    # The unreadable one is skipped.
    assert await ask(tenant, 3) == [200] * 3
    assert vendor.keys() == {"sk-third-4711"}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"label": "second"}, 400, "api_key"),
        ({"label": "second", "api_key": ""}, 400, "api_key"),
        ({"label": "second", "api_key": "x\r\nx-evil: 1"}, 422, "api_key"),
        ({"label": "second", "api_key": "x", "cloud_access_key_id": "x"}, 422, "cloud_access_key_id"),
        ({"label": "second", "api_key": "x", "base_url": "https://else.where"}, 422, "base_url"),
        ({"label": "Not A Label", "api_key": "x"}, 422, "label"),
        ({"label": "default", "api_key": "x"}, 422, "label"),
        ({"label": "second", "api_key": "x", "state": "gone"}, 422, "state"),
        ({"api_key": "x"}, 422, "label"),
    ],
)
async def test_a_fault_names_the_field(
    tenant: Tenant, vendor: Vendor, body: dict[str, str], status: int, text: str
) -> None:
    answer = await tenant.admin.client.post(PATH, json=body)
    assert (answer.status_code, text in answer.text) == (status, True), answer.text
    assert "evil" not in answer.text
    assert await listed(tenant) == [("default", "active")]


async def test_the_number_is_bounded_and_labels_are_unique(tenant: Tenant, vendor: Vendor) -> None:
    for number in range(9):
        await ok(tenant, "POST", PATH, {"label": f"key-{number}", "api_key": "sk-second-4711"})
    again = await tenant.admin.client.post(PATH, json={"label": "key-0", "api_key": "x"})
    assert (again.status_code, "credential with this label" in again.text) == (409, True)
    full = await tenant.admin.client.post(PATH, json={"label": "key-9", "api_key": "x"})
    assert (full.status_code, "maximum number of credentials" in full.text) == (409, True)
    assert (await tenant.admin.client.get(f"{PATH}/key-9")).status_code == 404
    # A further one in the place of the default one counts too.
    await ok(tenant, "DELETE", f"{PATH}/default")
    await ok(tenant, "POST", PATH, {"label": "key-9", "api_key": "sk-second-4711"})
    body = {"api_key": "sk-third-4711", "base_url": await base_url(tenant)}
    full = await tenant.admin.client.put(PATH, json=body)
    assert (full.status_code, "maximum number of credentials" in full.text) == (409, True)
    await ok(tenant, "DELETE", f"{PATH}/key-0")
    await ok(tenant, "PUT", PATH, body)
    assert len(await listed(tenant)) == 10
    await ok(tenant, "PUT", PATH, body)


async def test_credentials_that_are_added_together_stay_within_the_limit(
    tenant: Tenant, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The default credential counts too.
    monkeypatch.setattr("gatehouse.platform.routing.provider_credentials.service.MAX_CREDENTIALS", 2)
    bodies = ({"label": f"key-{number}", "api_key": "sk-second-4711"} for number in range(6))
    answers = await asyncio.gather(*(tenant.admin.client.post(PATH, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    assert all("maximum number of credentials" in answer.text for answer in answers if answer.is_error)
    assert len(await listed(tenant)) == 2


@pytest.mark.parametrize("kind", ["mine", "byoe"])
async def test_a_replaced_default_credential_keeps_its_state(tenant: Tenant, vendor: Vendor, kind: str) -> None:
    path, body = PATH, {"api_key": "sk-third-4711", "base_url": await base_url(tenant)}
    replace = ("PUT", PATH)
    if kind == "byoe":
        model = {
            "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1,
            "output_cost_per_1k": 1,
        }  # fmt: skip
        endpoint = {"id": "lab", "name": "Lab", "format": "openai", "models": [model], **body}
        await ok(tenant, "POST", f"{BASE}/byoe", endpoint)
        path, replace = f"{BASE}/lab/credentials", ("PATCH", f"{BASE}/byoe/lab")
    await ok(tenant, "POST", path, {"label": "second", "api_key": "sk-second-4711"})
    for state in ("disabled", "draining", "active"):
        await ok(tenant, "PATCH", f"{path}/default", {"state": state})
        await ok(tenant, *replace, body)
        credentials = (await tenant.auditor.client.get(path)).json()["credentials"]
        assert [(one["label"], one["state"]) for one in credentials] == [("default", state), ("second", "active")]


async def test_the_last_credential_in_use_stays(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711", "state": "disabled"})
    for method, body in (("DELETE", None), ("PATCH", {"state": "disabled"})):
        answer = await tenant.admin.client.request(method, f"{PATH}/default", json=body)
        assert (answer.status_code, "no other credential" in answer.text) == (409, True)
    await ok(tenant, "PATCH", f"{PATH}/default", {"state": "draining"})
    assert await ask(tenant) == [200]
    # All together are removed by the operation on the provider.
    await ok(tenant, "PUT", f"{BASE}/openai/credentials", {"api_key": "sk-first-4711"})
    await ok(tenant, "POST", f"{BASE}/openai/credentials", {"label": "second", "api_key": "sk-second-4711"})
    await ok(tenant, "DELETE", f"{BASE}/openai/credentials")
    assert (await tenant.admin.client.get(f"{BASE}/openai/credentials")).json() == {"credentials": []}
    assert (await tenant.admin.client.get(f"{BASE}/openai")).json()["credentials_configured"] is False


async def test_a_server_without_a_key_can_lose_its_only_credential(tenant: Tenant) -> None:
    await ok(tenant, "PUT", PATH, {"base_url": "http://127.0.0.1:9/v1"})
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    await ok(tenant, "DELETE", f"{PATH}/second")
    assert await listed(tenant) == []


async def test_a_way_of_authentication_that_further_credentials_may_use_is_not_removed(tenant: Tenant) -> None:
    path = f"{BASE}/azure_openai/credentials"
    application = {"entra_tenant_id": "contoso.com", "entra_client_id": "0" * 36, "entra_client_secret": "first-4711"}
    endpoint = {"hosted_endpoint": "https://example.openai.azure.com"}
    await ok(tenant, "PUT", path, {**application, **endpoint})
    await ok(tenant, "POST", path, {"label": "second", "entra_client_secret": "second-4711"})
    answer = await tenant.admin.client.put(path, json={"api_key": "x", **endpoint})
    assert (answer.status_code, "entra_client_secret" in answer.text) == (422, True)
    await ok(tenant, "DELETE", f"{path}/second")
    await ok(tenant, "PUT", path, {"api_key": "x", **endpoint})


async def test_the_identity_of_the_machine_replaces_all_credentials(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/bedrock/credentials"
    key = {"cloud_access_key_id": "AKIA" + "A" * 16, "cloud_secret_access_key": "first-4711"}
    await ok(tenant, "PUT", path, {**key, "cloud_region": "eu-central-1"})
    for label in ("third", "second"):
        await ok(tenant, "POST", path, {"label": label, **key})
    await ok(tenant, "PATCH", f"{path}/default", {"state": "disabled"})
    role = {"use_instance_role": True, "cloud_region": "eu-central-1"}
    # An administrator who may not use it removes nothing.
    assert (await tenant.admin.client.put(path, json=role)).status_code == 403
    assert len((await tenant.admin.client.get(path)).json()["credentials"]) == 3
    operator = await platform.new_person(tenant.id, "admin", operator=True)
    answer = await operator.client.put(path, json=role)
    assert (answer.status_code, answer.json()["credentials_configured"]) == (200, True)
    assert (await tenant.admin.client.get(path)).json() == {"credentials": []}
    assert platform.sql("SELECT count(*) FROM provider_credentials WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    *_, event = await platform.audit(tenant, "provider.credentials_set")
    assert event["details"]["removed"] == ["second", "third"]
    # A key that is set later is in use.
    await ok(tenant, "PUT", path, {**key, "cloud_region": "eu-central-1"})
    (shown,) = (await tenant.admin.client.get(path)).json()["credentials"]
    assert (shown["label"], shown["state"]) == ("default", "active")


async def test_a_credential_and_another_provider_never_have_the_same_variables(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    body = {"kind": "openai", "api_key": "x"}
    answer = await tenant.admin.client.put(f"{BASE}/mine--second/credentials", json=body)
    assert (answer.status_code, answer.json()["detail"][:6]) == (409, "The id"), answer.text


async def test_a_provider_whose_first_credential_is_a_further_one_is_checked(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    path = f"{BASE}/openai/credentials"
    await ok(tenant, "PUT", path, {"api_key": "sk-first-4711"})
    await ok(tenant, "DELETE", path)
    await ok(tenant, "POST", path, {"label": "second", "api_key": "sk-second-4711"})
    async with platform.host.database.service() as session:
        query = text("SELECT credentials_updated_at FROM providers WHERE tenant_id = :tenant AND id = 'openai'")
        assert (await session.execute(query, {"tenant": tenant.id})).scalar_one() is not None


async def test_the_former_way_of_setting_a_key_changes_the_default_credential(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    await ok(tenant, "PUT", PATH, {"api_key": "sk-third-4711", "base_url": await base_url(tenant)})
    assert await listed(tenant) == [("default", "active"), ("second", "active")]
    assert await ask(tenant, 4) == [200] * 4
    assert vendor.keys() == {"sk-second-4711", "sk-third-4711"}


async def base_url(tenant: Tenant) -> str:
    url: str = (await tenant.admin.client.get(f"{BASE}/mine")).json()["config"]["base_url"]
    return url


async def test_credentials_are_not_sent_to_another_host(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    body = {"base_url": "https://else.where/v1", "api_key": "x"}
    answer = await tenant.admin.client.put(PATH, json=body)
    assert (answer.status_code, "base_url" in answer.text) == (422, True)
    byoe = {
        "id": "in-house", "name": "x", "base_url": "https://models.example.com/v1", "format": "openai", "api_key": "x",
        "models": [
            {
                "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1,
                "output_cost_per_1k": 1,
            }
        ],
    }  # fmt: skip
    await ok(tenant, "POST", f"{BASE}/byoe", byoe)
    await ok(tenant, "POST", f"{BASE}/in-house/credentials", {"label": "second", "api_key": "sk-second-4711"})
    answer = await tenant.admin.client.patch(f"{BASE}/byoe/in-house", json=body)
    assert (answer.status_code, "base_url" in answer.text) == (422, True)


async def test_kinds_without_a_secret_have_no_credentials(tenant: Tenant) -> None:
    await ok(tenant, "PUT", f"{BASE}/ollama/credentials", {"local_runtime_base_url": "http://127.0.0.1:9"})
    assert (await tenant.admin.client.get(f"{BASE}/ollama/credentials")).json() == {"credentials": []}
    answer = await tenant.admin.client.post(f"{BASE}/ollama/credentials", json={"label": "second", "api_key": "x"})
    assert (answer.status_code, "needs no secret" in answer.text) == (409, True)


async def test_each_key_of_a_cloud_has_its_own_id(platform: RunningPlatform, tenant: Tenant) -> None:
    first = {"cloud_access_key_id": "AKIA" + "A" * 16, "cloud_secret_access_key": "first-4711"}
    await ok(tenant, "PUT", f"{BASE}/bedrock/credentials", {**first, "cloud_region": "eu-central-1"})
    second = {"cloud_access_key_id": "AKIA" + "B" * 16, "cloud_secret_access_key": "second-4711"}
    missing = await tenant.admin.client.post(
        f"{BASE}/bedrock/credentials", json={"label": "second", "cloud_secret_access_key": "x"}
    )
    assert (missing.status_code, "cloud_access_key_id" in missing.text) == (400, True)
    await ok(tenant, "POST", f"{BASE}/bedrock/credentials", {"label": "second", **second})
    third = {"cloud_access_key_id": "AKIA" + "C" * 16, "cloud_secret_access_key": "third-4711"}
    await ok(tenant, "POST", f"{BASE}/bedrock/credentials/default/rotate", third)
    shown = (await tenant.admin.client.get(f"{BASE}/bedrock")).json()["config"]
    assert (shown["cloud_access_key_id"], shown["cloud_region"]) == ("AKIA...CCCC", "eu-central-1")
    await ok(tenant, "DELETE", f"{BASE}/bedrock/credentials/default")
    provider = (await tenant.admin.client.get(f"{BASE}/bedrock")).json()
    assert provider["credentials_configured"] is True
    assert "cloud_access_key_id" not in provider["config"]


async def test_a_change_of_another_version_is_refused(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    for label in ("default", "second"):
        tag = (await tenant.admin.client.get(f"{PATH}/{label}")).headers["etag"]
        await ok(tenant, "PATCH", f"{PATH}/{label}", {"state": "draining"}, **{"If-Match": tag})
        for method, path, body in (
            ("PATCH", f"{PATH}/{label}", {"state": "active"}),
            ("POST", f"{PATH}/{label}/rotate", {"api_key": "x"}),
            ("DELETE", f"{PATH}/{label}", None),
        ):
            answer = await tenant.admin.client.request(method, path, json=body, headers={"If-Match": tag})
            assert answer.status_code == 412, answer.text
    assert await listed(tenant) == [("default", "draining"), ("second", "draining")]


async def test_only_administrators_of_the_organization_use_them(
    platform: RunningPlatform, tenant: Tenant, vendor: Vendor
) -> None:
    other = await platform.new_tenant()
    new = {"label": "second", "api_key": "x"}
    assert (await tenant.auditor.client.post(PATH, json=new)).status_code == 403
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401
    assert (await other.admin.client.get(PATH)).status_code == 404
    assert (await other.admin.client.post(PATH, json=new)).status_code == 404
    assert (await other.admin.client.get(f"{PATH}/default")).status_code == 404


async def test_no_request_fails_while_a_key_is_rotated(tenant: Tenant, vendor: Vendor) -> None:
    """The vendor accepts the old key for a while, as vendors do."""
    async with Load(tenant) as load:
        await ok(tenant, "POST", f"{PATH}/default/rotate", {"api_key": "sk-second-4711"})
        # The calls that were under way end with the old key.
        await asyncio.sleep(0.1)
        vendor.keys()
        await load.answers(40)
        assert vendor.keys() == {"sk-second-4711"}
        vendor.valid.remove("sk-first-4711")
    assert set(load.statuses) == {200}


async def test_no_request_fails_while_a_key_is_revoked_first(tenant: Tenant, vendor: Vendor) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    async with Load(tenant) as load:
        vendor.valid.remove("sk-first-4711")
        await load.answers(40)
        await ok(tenant, "POST", f"{PATH}/default/rotate", {"api_key": "sk-third-4711"})
        await load.answers(40)
        vendor.limited.add("sk-second-4711")
        await load.answers(40)
    assert set(load.statuses) == {200}


async def test_records_name_the_credentials_of_a_request(
    platform: RunningPlatform, tenant: Tenant, vendor: Vendor
) -> None:
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    vendor.valid.remove("sk-first-4711")
    assert await ask(tenant, 2) == [200] * 2
    await drained(platform)
    page = (await tenant.admin.client.get("/api/v1/usage/records")).json()["records"]
    details = [(await tenant.admin.client.get(f"/api/v1/usage/records/{row['id']}")).json() for row in page]
    attempts = [[(one["credential"], one["reason"]) for one in row["attempts"]] for row in details]
    assert sorted(attempts, key=len) == [
        [("second", None)],
        [("default", "unauthorized"), ("second", None)],
    ]  # fmt: skip


async def test_a_health_check_passes_if_one_credential_is_accepted(tenant: Tenant, vendor: Vendor) -> None:
    vendor.valid = {"sk-second-4711"}
    assert (await ok(tenant, "POST", f"{BASE}/mine/health-check"))["health_check_status"] == "degraded"
    await ok(tenant, "POST", PATH, {"label": "second", "api_key": "sk-second-4711"})
    assert (await ok(tenant, "POST", f"{BASE}/mine/health-check"))["health_check_status"] != "unreachable"
    tested = await ok(tenant, "POST", "/api/admin/system/check-provider/mine")
    assert tested["status"] == "reachable", tested
