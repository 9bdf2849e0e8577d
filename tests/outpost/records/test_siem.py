"""An outpost sends events of its requests to a SIEM directly, whether the platform has its records or not."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from tests.platform.operations.siem.test_senders import listening, messages, tls
from tests.support.fake_platform import FakePlatform
from tests.support.outpost_server import OutpostServer, Trust, chat_body
from tests.support.receiver import Receiver, certificate
from tests.support.values import shows

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost.records.siem import target
from gatehouse.outpost.settings import OutpostSettings

TOKEN = "a-collectors-own-token-77aa"
CARD = "My card is 4242 4242 4242 4242."


async def until(condition: Callable[[], Any], seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    return value


def collecting(receiver: Receiver) -> dict[str, str]:
    return {
        "SIEM_DIRECT_TYPE": "hec",
        "SIEM_DIRECT_URL": receiver.url,
        "SIEM_DIRECT_TOKEN": TOKEN,
        "SIEM_DIRECT_INDEX": "gateway",
        "SIEM_DIRECT_CA_BUNDLE": str(certificate()),
    }


def events(receiver: Receiver) -> list[dict[str, Any]]:
    """Returns all events that the collector has received, in order."""
    return [json.loads(line)["event"] for request in receiver.got for line in request.body.splitlines()]


def requests(receiver: Receiver) -> list[str]:
    """Returns the ids of the requests in the received events, without duplicates."""
    results = [
        event["http"]["request"]["id"] for event in events(receiver) if event["event"]["dataset"] == "gatehouse.audit"
    ]
    return list(dict.fromkeys(results))


async def ask(outpost: OutpostServer, text: str = "Hello", **more: Any) -> str:
    """Returns the request's id."""
    answer = await asyncio.to_thread(outpost.ask, text, **more)
    return str(answer.headers["x-request-id"])


async def siem_status(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as operator:
        answer = await asyncio.to_thread(operator.get, "/admin/api/status")
    siem: dict[str, Any] = answer.json()["siem"]
    return siem


def stored(trust: Trust, request_id: str) -> list[Any]:
    return trust.server.sql("SELECT id, action, details FROM audit_events WHERE request_id = %s", [request_id])


async def test_a_collector_receives_the_same_events_as_the_platform(trust: Trust) -> None:
    async with Receiver.listening() as receiver:
        with OutpostServer(trust, **collecting(receiver)) as outpost:
            request_id = await ask(outpost, CARD)
            audit, *dlp = await until(lambda: len(events(receiver)) > 1 and events(receiver))
            assert receiver.got[0].headers["Authorization"] == f"Splunk {TOKEN}"
            assert json.loads(receiver.got[0].body.splitlines()[0])["index"] == "gateway"
            (row,) = await until(lambda: stored(trust, request_id))
            assert audit["event"]["id"] == str(row[0])
            assert audit["event"]["action"] == row[1]
            assert audit["gatehouse"]["details"] == row[2]
            assert audit["gatehouse"]["details"]["outpost_id"] == str(outpost.id)
            # An entry of the outpost has no position in the audit chain.
            assert not {"sequence", "hash"} & audit["event"].keys()
            of_the_platform = trust.server.sql("SELECT id FROM dlp_events WHERE request_id = %s", [request_id])
            assert [rule["event"]["id"] for rule in dlp] == [str(result) for (result,) in of_the_platform]
            assert {rule["event"]["dataset"] for rule in dlp} == {"gatehouse.dlp"}
            assert not shows(json.dumps([audit, *dlp]), "4242")
            status = await siem_status(outpost)
            assert (status["type"], status["sent"], status["fault"]) == ("hec", 1 + len(dlp), None)
            figures = httpx2.get(outpost.url + "/metrics").text
            assert TOKEN not in figures + outpost.log + json.dumps(status)


async def test_unsent_events_survive_kills_of_the_outpost(trust: Trust) -> None:
    async with Receiver.listening() as receiver:
        receiver.otherwise = 503
        with OutpostServer(trust, **collecting(receiver)) as outpost:
            questions = [await ask(outpost) for _ in range(5)]
            await until(lambda: stored(trust, questions[-1]))
            status = await until_status(outpost, lambda match: match["fault"])
            assert status["fault"] == "the receiver answered 503"
            assert status["waiting_bytes"] > 0
            for _ in range(2):
                outpost.kill()
                outpost.start()
                outpost.wait()
                questions.append(await ask(outpost))
                await until(lambda: stored(trust, questions[-1]))
            receiver.got.clear()
            receiver.otherwise = 200
            await until(lambda: len(requests(receiver)) == len(questions))
            assert requests(receiver) == questions
            # Then the journals of dead processes are deleted, and the platform has each request once.
            journal = outpost.home / "outpost" / "journal"
            await until(lambda: len(list(journal.glob("*-*"))) == 1)
            assert [len(stored(trust, question)) for question in questions] == [1] * len(questions)
            await until_status(outpost, lambda match: match["waiting_bytes"] == 0)
            sent = len(events(receiver))
            outpost.kill()
            outpost.start()
            outpost.wait()
            last = await ask(outpost)
            await until(lambda: last in requests(receiver))
            # Events before the stored position are not sent again.
            assert len(events(receiver)) == sent + 1


async def until_status(outpost: OutpostServer, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 90
    while not condition(result := await siem_status(outpost)):
        assert time.monotonic() < deadline, result
        await asyncio.sleep(0.05)
    return result


async def test_a_stream_cut_off_by_a_kill_is_recorded_as_interrupted() -> None:
    async with Receiver.listening() as receiver:
        with FakePlatform() as platform:
            outpost = OutpostServer(platform, **collecting(receiver))  # type: ignore[arg-type]
            platform.send(platform.bundle(outpost.id, 1))
            with outpost:
                request_id = await asyncio.to_thread(_cut_off, outpost)
                outpost.start()
                outpost.wait()
                await until(lambda: request_id in requests(receiver))
                (result,) = [event for event in events(receiver) if event["http"]["request"]["id"] == request_id]
                assert result["gatehouse"]["outcome"] == "interrupted"
                assert result["gatehouse"]["details"]["stream"] is True


def _cut_off(outpost: OutpostServer) -> str:
    body = chat_body("Hello", "sandbox/stream-10000", stream=True)
    with outpost.client() as client, client.stream("POST", "/v1/chat/completions", json=body) as answer:
        next(answer.iter_bytes())
        outpost.kill()
        return str(answer.headers["x-request-id"])


async def test_a_large_batch_is_split_and_a_single_large_event_is_skipped(trust: Trust) -> None:
    async with Receiver.listening() as receiver:
        with OutpostServer(trust, **collecting(receiver)) as outpost:
            receiver.otherwise = 503
            requests = [
                await ask(outpost, model="no-such-model" if number == 2 else "sandbox/echo") for number in range(6)
            ]

            async def picky(request: web.Request) -> web.StreamResponse:
                body = await request.read()
                small = len(body.splitlines()) <= 2 and b"no-such-model" not in body
                return web.Response(status=200 if small else 413)

            await until_status(outpost, lambda match: match["fault"])
            receiver.got.clear()
            receiver.otherwise = picky
            status = await until_status(outpost, lambda match: match["skipped"] == 1 and match["waiting_bytes"] == 0)
            assert (status["sent"], status["fault"]) == (5, None)
            accepted = [
                request
                for request in receiver.got
                if len(request.body.splitlines()) <= 2 and b"no-such-model" not in request.body
            ]
            results = [
                json.loads(line)["event"]["http"]["request"]["id"]
                for request in accepted
                for line in request.body.splitlines()
            ]
            assert results == requests[:2] + requests[3:]
            assert "siem_event_too_large" in outpost.log


async def test_syslog_receives_each_event_as_a_message(trust: Trust) -> None:
    async with listening(tls()) as log:
        siem = {
            "SIEM_DIRECT_TYPE": "syslog",
            "SIEM_DIRECT_URL": f"tls://localhost:{log.port}",
            "SIEM_DIRECT_CA_BUNDLE": str(certificate()),
        }
        with OutpostServer(trust, **siem) as outpost:
            request_id = await ask(outpost)
            await until(lambda: log.connections)
        (message,) = [message for data in log.connections for message in messages(data)]
        assert b"gatehouse.audit" in message
        assert request_id.encode() in message


async def test_a_webhook_receives_signed_batches(trust: Trust) -> None:
    async with Receiver.listening() as receiver:
        with OutpostServer(trust, **{**collecting(receiver), "SIEM_DIRECT_TYPE": "webhook"}) as outpost:
            request_id = await ask(outpost)
            request, *_ = await receiver.until(1)
        digest = hmac.new(TOKEN.encode(), request.body, hashlib.sha256).hexdigest()
        assert request.headers["X-Service-Signature"] == f"sha256={digest}"
        (event,) = request.json["payload"]["events"]
        assert event["http"]["request"]["id"] == request_id


async def test_a_file_gets_requests_and_operators_calls_below_the_organizations_folder(trust: Trust) -> None:
    with OutpostServer(trust, SIEM_DIRECT_TYPE="file") as outpost, outpost.admin() as operator:
        request_id = await ask(outpost)
        path: Path = (await until(lambda: list((outpost.home / "siem").glob("*/events.jsonl"))))[0]
        (line,) = await until(lambda: path.read_bytes().splitlines())
        event = json.loads(line)
        assert event["http"]["request"]["id"] == request_id
        assert event["organization"]["id"] == path.parent.name
        # The event of an operator's call is the same as on the platform.
        answer = operator.put("/admin/api/override/routing", json={"routes": {"gpt-4o": "sandbox/echo"}})
        assert answer.status_code == 200, answer.text
        _, line = await until(lambda: len(lines := path.read_bytes().splitlines()) > 1 and lines)
        event = json.loads(line)
        assert event["event"]["action"] == "outpost.operated"
        assert event["gatehouse"]["details"] == {"call": "routing_overrides", "count": 1, "models": "gpt-4o"}
        query = "SELECT id::text FROM audit_events WHERE action = 'outpost.operated' AND resource_id = %s"
        rows = await until(lambda: trust.server.sql(query, [str(outpost.id)]))
        assert rows == [(event["event"]["id"],)]


async def test_an_operator_can_test_the_receiver(trust: Trust) -> None:
    async with Receiver.listening() as receiver:
        with OutpostServer(trust, **collecting(receiver)) as outpost, outpost.admin() as operator:
            body = (await asyncio.to_thread(operator.post, "/admin/api/siem/test")).json()
            assert (body["success"], body["error"]) == (True, None)
            assert events(receiver)[0]["event"]["action"] == "siem.test"
            receiver.answers.append(403)
            body = (await asyncio.to_thread(operator.post, "/admin/api/siem/test")).json()
            assert (body["success"], body["error"]) == (False, "the receiver answered 403")
            assert outpost.log.count("outpost.siem_tested") == 2


def test_without_a_receiver_the_test_is_refused(outpost: OutpostServer, operator: httpx2.Client) -> None:
    answer = operator.post("/admin/api/siem/test")
    assert (answer.status_code, answer.json()["error"]) == (409, "siem_not_configured")
    assert operator.get("/admin/api/status").json()["siem"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"siem_direct_type": "hec", "siem_direct_token": TOKEN}, "SIEM_DIRECT_URL"),
        ({"siem_direct_type": "hec", "siem_direct_url": "http://splunk:8088", "siem_direct_token": TOKEN}, "https://"),
        ({"siem_direct_type": "hec", "siem_direct_url": "https://splunk:8088"}, "SIEM_DIRECT_TOKEN"),
        ({"siem_direct_type": "webhook", "siem_direct_url": "https://here"}, "SIEM_DIRECT_TOKEN"),
        ({"siem_direct_type": "syslog"}, "SIEM_DIRECT_URL"),
        ({"siem_direct_type": "syslog", "siem_direct_url": "udp://here:514"}, "tcp://host:port"),
        ({"siem_direct_type": "syslog", "siem_direct_url": "tcp://here"}, "tcp://host:port"),
        ({"siem_direct_type": "syslog", "siem_direct_url": "tcp://here:many"}, "tcp://host:port"),
        (
            {"siem_direct_type": "syslog", "siem_direct_url": "tls://a:1", "siem_direct_ca_bundle": Path("/gone.pem")},
            "SIEM_DIRECT_CA_BUNDLE",
        ),
    ],
)
def test_an_invalid_receiver_is_reported_by_its_variable(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        target(OutpostSettings(**settings))
