"""An outpost calls Vertex AI with the identity of its own machine, as the policy of the platform says."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from tests.support.outpost_server import OutpostServer, Trust
from tests.support.upstream import Connection, upstream
from tests.support.vendors.google_cloud import CLAUDE, CONFIG, GoogleCloud

from gatehouse.platform.changes.change import DEFAULT_TENANT


class Federated(GoogleCloud):
    """Google Cloud with a service that exchanges tokens of another identity provider."""

    async def __call__(self, connection: Connection) -> None:
        if connection.head.startswith("POST /sts "):
            assert b"subject_token=subject.token" in connection.body
            await self.answer_token(connection)
        else:
            await super().__call__(connection)


def connect(trust: Trust, url: str) -> None:
    server = trust.server
    with trust.admin() as admin:
        body: dict[str, Any] = {"use_instance_role": True, **CONFIG}
        answer = admin.put("/api/admin/providers/vertex_ai/credentials", json=body)
        assert answer.status_code == 200, answer.text
        server.sql(
            "UPDATE providers SET config = config || %s::jsonb WHERE id = 'vertex_ai'", [json.dumps({"base_url": url})]
        )
        server.touch("policy", DEFAULT_TENANT)
        answer = admin.post("/api/admin/models/catalog/", json={"provider": "vertex_ai", "model_id": CLAUDE})
        assert answer.status_code == 201, answer.text


async def test_the_identity_of_the_outposts_machine_is_used(trust: Trust, tmp_path: Path) -> None:
    token, file = tmp_path / "token", tmp_path / "federation.json"
    token.write_text("subject.token")
    cloud = Federated()
    async with upstream(cloud) as server:
        account = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{server.url}/sts",
            "credential_source": {"file": str(token)},
        }
        file.write_text(json.dumps(account))
        await asyncio.to_thread(connect, trust, server.url)

        def ask() -> Any:
            with OutpostServer(trust, GOOGLE_APPLICATION_CREDENTIALS=str(file)) as outpost:
                deadline = time.monotonic() + 60
                while (answer := outpost.ask(model=f"vertex_ai/{CLAUDE}")).status_code != 200:
                    assert time.monotonic() < deadline, answer.text
                    time.sleep(0.1)
                return answer

        answer = await asyncio.to_thread(ask)
    assert answer.json()["choices"][0]["message"]["content"] == "Hi ä"
    assert len(cloud.tokens) == 1
