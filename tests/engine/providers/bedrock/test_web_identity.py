"""A role that is assumed with a token file, and the other ways to authenticate at Bedrock."""

from urllib.parse import parse_qs

import pytest
from tests.engine.providers.conftest import call, candidate, everything
from tests.support.upstream import Connection, upstream
from tests.support.vendors.bedrock import KEY_ID, REGION, SECRET, Bedrock, begin_stream, event

from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.bedrock.machine import Machine
from gatehouse.engine.providers.bedrock.web_identity import _endpoint

TOKEN = "session/token+of=the=role"
ROLE = "arn:aws:iam::123456789012:role/gateway"
ANSWER = f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Credentials>
      <AccessKeyId>{KEY_ID}</AccessKeyId>
      <SecretAccessKey>{SECRET}</SecretAccessKey>
      <SessionToken>{TOKEN}</SessionToken>
      <Expiration>2099-01-01T00:00:00Z</Expiration>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


def sts(answer: str, status: int = 200):
    async def behave(connection: Connection) -> None:
        await connection.answer(answer.encode(), status=status, kind="text/xml")

    return behave


@pytest.fixture
def environment(tmp_path):
    file = tmp_path / "token"
    file.write_text("web.identity.token\n")
    return {"AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_ROLE_ARN": ROLE, "AWS_REGION": REGION}


async def test_a_role_is_assumed_with_a_token_file(ask, monkeypatch, environment) -> None:
    vendor = Bedrock(session_token=TOKEN)
    async with upstream(vendor) as server, upstream(sts(ANSWER)) as service:
        machine = Machine({**environment, "AWS_ENDPOINT_URL_STS": service.url})
        monkeypatch.setattr(KINDS["bedrock"], "_machine", machine)
        place = candidate("bedrock", base_url=server.url, cloud_region=REGION, use_instance_role=True)
        for _ in range(2):
            await ask(call(), place, secret={})
        (request,) = service.requests
    assert {name: values[0] for name, values in parse_qs(request.body.decode()).items()} == {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "gatehouse",
        "WebIdentityToken": "web.identity.token",
    }
    assert vendor.faults == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [("<ErrorResponse>", 403), ("<html>", 200), (ANSWER.replace("2099", "soon"), 200), ("\0", 500)],
)
async def test_a_service_that_refuses_is_a_failure_of_the_provider(outbound, environment, answer, status) -> None:
    async with upstream(sts(answer, status)) as service:
        machine = Machine({**environment, "AWS_ENDPOINT_URL_STS": service.url})
        with pytest.raises(ProviderFailed) as failed:
            await machine.get(outbound)
    assert failed.value.reason == ("unauthorized" if status == 403 else "no_instance_role")
    assert failed.value.move_on


@pytest.mark.parametrize(
    ("region", "url"),
    [
        (None, "https://sts.amazonaws.com/"),
        ("eu-central-1", "https://sts.eu-central-1.amazonaws.com/"),
        ("cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
    ],
)
def test_the_region_selects_the_address_of_the_service(region, url) -> None:
    assert _endpoint(region) == url


async def test_temporary_keys_are_sent_with_their_session_token(ask) -> None:
    vendor = Bedrock(session_token=TOKEN)
    async with upstream(vendor) as server:
        place = candidate("bedrock", base_url=server.url, cloud_region=REGION, cloud_access_key_id=KEY_ID)
        await ask(call(), place, secret={"cloud_secret_access_key": SECRET, "cloud_session_token": TOKEN})
    assert vendor.faults == []


@pytest.mark.parametrize("of_machine", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_api_key_is_sent_instead_of_a_signature(ask, monkeypatch, stream, of_machine) -> None:
    async def behave(connection: Connection) -> None:
        assert connection.headers["authorization"] == "Bearer ABSK-very-secret"
        assert "x-amz-date" not in connection.headers
        if not stream:
            await connection.answer(Bedrock().whole())
            return
        await begin_stream(connection)
        await connection.chunk(event("messageStart", {"role": "assistant"}))
        await connection.chunk(event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}))
        await connection.chunk(event("messageStop", {"stopReason": "end_turn"}))
        await connection.end_stream()

    machine = Machine({"AWS_BEARER_TOKEN_BEDROCK": "ABSK-very-secret"})
    monkeypatch.setattr(KINDS["bedrock"], "_machine", machine)
    async with upstream(behave) as server:
        place = candidate("bedrock", base_url=server.url, cloud_region=REGION, use_instance_role=of_machine)
        reply = await ask(call(stream=stream), place, secret={} if of_machine else {"api_key": "ABSK-very-secret"})
        assert b"Hi" in (await everything(reply) if stream else reply.body)
