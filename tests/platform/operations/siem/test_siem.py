"""The SIEM endpoints (docs/siem.md)."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.platform.operations.siem.conftest import PATH, TOKEN, Siem
from tests.platform.operations.siem.test_senders import authority
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import certificate

EMPTY = {
    "type": None, "enabled": False, "url": None, "host": None, "port": None, "ca_certificate": None, "index": None,
    "token_configured": False, "secret_configured": False, "created_at": None, "updated_at": None,
    "status": {
        "active": False, "backlog": 0, "lag_seconds": None, "last_sent_at": None, "last_error": None,
        "last_failed_at": None, "skipped": 0,
    },
}  # fmt: skip
COLLECTOR = {"type": "hec", "url": "https://1.1.1.1:8088/services/collector/event", "token": TOKEN}


async def test_without_a_receiver_the_configuration_is_empty(tenant: Tenant) -> None:
    for person in (tenant.admin, tenant.auditor):
        assert (await person.client.get(PATH)).json() == EMPTY


async def test_the_configuration_is_shown_without_its_secret(siem: Siem) -> None:
    response = await siem.put(**COLLECTOR, index="main")
    assert TOKEN not in str(response)
    assert {**response, "created_at": None, "updated_at": None, "status": None} == {
        **EMPTY, "type": "hec", "enabled": True, "url": COLLECTOR["url"], "index": "main", "token_configured": True,
        "status": None,
    }  # fmt: skip
    shown = (await siem.tenant.admin.client.get(PATH)).json()
    assert {**shown, "status": None} == {**response, "status": None}


async def test_only_the_sent_fields_change(siem: Siem) -> None:
    before = await siem.put(**COLLECTOR, index="main")
    after = await siem.put(enabled=False)
    assert {name for name in before if before[name] != after[name]} - {"status"} == {"enabled", "updated_at"}
    assert (await siem.put(index=None))["index"] is None


async def test_another_type_replaces_the_whole_configuration(siem: Siem) -> None:
    await siem.put(**COLLECTOR, index="main", enabled=False)
    response = await siem.put(type="syslog_tls", host="1.1.1.1", port=6514, ca_certificate=authority())
    assert (response["url"], response["index"], response["token_configured"], response["enabled"]) == (
        None,
        None,
        False,
        False,
    )
    row = siem.platform.sql("SELECT sealed_secret FROM siem_targets WHERE tenant_id = %s", [siem.tenant.id])
    assert row == [(None,)]


async def test_an_unchanged_configuration_is_not_audited(siem: Siem) -> None:
    response = await siem.put(**COLLECTOR)
    assert (await siem.put(type="hec", url=COLLECTOR["url"], enabled=True))["updated_at"] == response["updated_at"]
    assert len(await siem.platform.audit(siem.tenant, "siem.changed")) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "type"),
        ({"enabled": True}, "type"),
        ({"type": "carrier pigeon"}, "type"),
        ({"type": "hec", "url": "https://1.1.1.1/"}, "token"),
        ({"type": "hec", "token": TOKEN}, "url"),
        ({**COLLECTOR, "token": "short"}, "token"),
        ({**COLLECTOR, "token": "has\r\na line break"}, "token"),
        ({**COLLECTOR, "token": None}, "token"),
        ({**COLLECTOR, "url": None}, "url"),
        ({**COLLECTOR, "enabled": "yes"}, "enabled"),
        ({**COLLECTOR, "host": "1.1.1.1"}, "host"),
        ({**COLLECTOR, "secret": "a secret of its own"}, "secret"),
        ({**COLLECTOR, "path": "/etc/passwd"}, "path"),
        ({"type": "file", "url": "https://1.1.1.1/"}, "url"),
        ({"type": "webhook", "url": "https://1.1.1.1/"}, "secret"),
        ({"type": "syslog_tcp", "host": "1.1.1.1"}, "port"),
        ({"type": "syslog_tcp", "host": "1.1.1.1", "port": 0}, "port"),
        ({"type": "syslog_tcp", "host": "1.1.1.1", "port": 65536}, "port"),
        ({"type": "syslog_tcp", "host": "1.1.1.1", "port": 1, "ca_certificate": "x"}, "ca_certificate"),
        ({"type": "syslog_tls", "host": "1.1.1.1", "port": 1, "ca_certificate": "no PEM"}, "ca_certificate"),
    ],
)
async def test_an_invalid_receiver_is_422_and_names_the_field(siem: Siem, body: dict[str, Any], field: str) -> None:
    answer = await siem.tenant.admin.client.put(PATH, json=body)
    assert answer.status_code == 422, answer.text
    assert field in {fault["loc"][-1] for fault in answer.json()["detail"]}
    assert (await siem.tenant.admin.client.get(PATH)).json() == EMPTY


async def test_a_private_key_among_the_authorities_is_refused(siem: Siem) -> None:
    body = {"type": "syslog_tls", "host": "1.1.1.1", "port": 6514, "ca_certificate": certificate().read_text()}
    answer = await siem.tenant.admin.client.put(PATH, json=body)
    assert answer.status_code == 422
    assert "PRIVATE" not in answer.text


BLOCKED = (
    "127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "localhost", "metadata.google.internal", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
)  # fmt: skip


@pytest.mark.parametrize("host", [*BLOCKED, "::1", "::ffff:127.0.0.1", "fd00:ec2::254", "fe80::1", "64:ff9b::7f00:1"])
@pytest.mark.parametrize("kind", ["hec", "webhook", "syslog_tcp", "syslog_tls"])
async def test_a_receiver_at_an_internal_address_is_refused(
    platform: RunningPlatform, tenant: Tenant, host: str, kind: str
) -> None:
    shown = f"[{host}]" if ":" in host else host
    secrets = {"hec": {"token": TOKEN}, "webhook": {"secret": "a secret of its own"}}
    where = {"url": f"https://{shown}:8088/"} if kind in secrets else {"host": host, "port": 6514}
    body = {"type": kind, **where, **secrets.get(kind, {})}
    answer = await tenant.admin.client.put(PATH, json=body)
    assert answer.status_code == 422, answer.text
    assert {fault["loc"][-1] for fault in answer.json()["detail"]} == {"url" if kind in secrets else "host"}


@pytest.mark.parametrize(
    "host",
    ["a b", "1.1.1.1/x", "1.1.1.1:80", "user@1.1.1.1", "1.1.1.1#x", "x?y", "[::1]", "1.1.1.1\\x", "fe80::1%eth0"],
)
async def test_an_invalid_host_is_refused(tenant: Tenant, host: str) -> None:
    answer = await tenant.admin.client.put(PATH, json={"type": "syslog_tcp", "host": host, "port": 514})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "url", ["http://1.1.1.1/", "ftp://1.1.1.1/", "https://u:p@1.1.1.1/", "https://", "1.1.1.1", "https://1.1.1.1\\@x/"]
)
async def test_an_unsafe_url_is_refused(tenant: Tenant, url: str) -> None:
    answer = await tenant.admin.client.put(PATH, json={**COLLECTOR, "url": url})
    assert answer.status_code == 422, answer.text


async def test_a_collectors_token_is_not_sent_to_another_host(siem: Siem) -> None:
    await siem.put(**COLLECTOR)
    answer = await siem.tenant.admin.client.put(PATH, json={"url": "https://8.8.8.8:8088/"})
    assert answer.status_code == 422
    assert "token" in answer.text
    assert (await siem.put(url="https://1.1.1.1:8088/other"))["url"] == "https://1.1.1.1:8088/other"
    assert (await siem.put(url="https://8.8.8.8:8088/", token="another-token"))["url"] == "https://8.8.8.8:8088/"


async def test_unauthorized_callers_are_refused_before_the_body_is_read(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    reader = await platform.new_m2m(tenant.id, "admin:read")
    assert (await reader.get(PATH)).status_code == 200
    for method, path in (("GET", PATH), ("PUT", PATH), ("POST", f"{PATH}/test")):
        assert (await platform.anonymous.request(method, path)).status_code == 401
        assert (await tenant.user.client.request(method, path)).status_code == 403
    for method, path in (("PUT", PATH), ("POST", f"{PATH}/test")):
        assert (await tenant.auditor.client.request(method, path)).status_code == 403
        assert (await reader.request(method, path)).status_code == 403


async def test_a_receiver_belongs_to_one_organization(siem: Siem, other_tenant: Tenant) -> None:
    await siem.put(**COLLECTOR)
    assert (await other_tenant.admin.client.get(PATH)).json() == EMPTY
    assert (await other_tenant.admin.client.post(f"{PATH}/test")).status_code == 409


async def test_a_change_is_in_the_audit_chain_without_url_and_secrets(siem: Siem) -> None:
    await siem.put(**COLLECTOR)
    await siem.put(token="another-token-of-it", enabled=False)
    first, second = await siem.platform.audit(siem.tenant, "siem.changed")
    assert first["details"] == {"changed": ["enabled", "token", "type", "url"], "type": "hec", "enabled": True}
    assert second["details"] == {"changed": ["enabled", "token"], "type": "hec", "enabled": False}
    assert str(first["actor_id"]) == str(siem.tenant.admin.id)


async def test_two_concurrent_first_changes_are_serialized(siem: Siem) -> None:
    client = siem.tenant.admin.client
    answers = await asyncio.gather(*(client.put(PATH, json=COLLECTOR) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4


async def test_a_test_reports_whether_the_receiver_accepted_the_event(siem: Siem) -> None:
    path, client = f"{PATH}/test", siem.tenant.admin.client
    assert (await client.post(path)).status_code == 409
    await siem.put(type="hec", url=siem.receiver.url, token=TOKEN, enabled=False)
    body = (await client.post(path)).json()
    assert (body["success"], body["error"]) == (True, None)
    (event,) = siem.events
    assert (event["event"]["action"], event["organization"]["id"]) == ("siem.test", str(siem.tenant.id))
    assert siem.receiver.got[0].path == "/services/collector/event"
    siem.receiver.otherwise = 403
    body = (await client.post(path)).json()
    assert (body["success"], body["error"]) == (False, "the receiver answered 403")
    recorded = await siem.platform.audit(siem.tenant, "siem.tested")
    assert [event["details"]["success"] for event in recorded] == [True, False]


async def test_only_operators_configure_a_file_receiver(siem: Siem) -> None:
    admin, operator = siem.tenant.admin.client, (await siem.platform.operator()).client
    for before in ({}, COLLECTOR):
        if before:
            await siem.put(**before)
        answer = await admin.put(PATH, json={"type": "file"})
        assert (answer.status_code, "operator" in answer.json()["detail"]) == (403, True)
    assert (await admin.get(PATH)).json()["type"] == "hec"
    answer = await operator.put(PATH, json={"type": "file", "enabled": False})
    assert (answer.status_code, answer.json()["type"]) == (200, "file")
    await operator.put(PATH, json={**COLLECTOR, "enabled": False})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            '{"text": "Incorrect index", "code": 7, "invalid-event-number": 0}',
            ": the index is unknown, or the token has no right to it",
        ),
        ('{"text": "Invalid token", "code": 4}', ": the token is unknown"),
        (f'{{"text": "{TOKEN}", "code": 99}}', "the receiver answered 400"),
        (TOKEN, "the receiver answered 400"),
        ('{"code": "7"}', "the receiver answered 400"),
    ],
)
async def test_a_collectors_error_is_reported_without_its_text(siem: Siem, answer: str, error: str) -> None:
    await siem.put(type="hec", url=siem.receiver.url, token=TOKEN, enabled=False)
    siem.receiver.answers.append(web.Response(status=400, text=answer))
    body = (await siem.tenant.admin.client.post(f"{PATH}/test")).json()
    assert error in body["error"]
    assert TOKEN not in body["error"]


async def test_a_first_set_up_never_replaces_the_receiver_of_somebody_else(siem: Siem) -> None:
    admin, new = siem.tenant.admin.client, {"If-None-Match": "*"}
    bodies = [{"type": "syslog_tcp", "host": "1.1.1.1", "port": port, "enabled": False} for port in (514, 515)]
    answers = await asyncio.gather(*(admin.put(PATH, json=body, headers=new) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    (won,), (lost,) = ([one for one in answers if (one.status_code == 200) is good] for good in (True, False))
    assert "GET /api/v1/admin/siem" in lost.json()["detail"]
    assert (await admin.get(PATH)).json()["port"] == won.json()["port"]
    assert len(await siem.platform.audit(siem.tenant, "siem.changed")) == 1
    other = await admin.put(PATH, json={"port": 516}, headers={"If-None-Match": '"1"'})
    assert other.status_code == 422
    changed = await admin.put(PATH, json={"port": 516}, headers={"If-Match": won.headers["ETag"]})
    assert (changed.status_code, changed.json()["port"]) == (200, 516)
