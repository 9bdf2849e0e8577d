"""An outpost whose new policy needs a model is not ready until the model is loaded."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
from tests.support.outpost_server import OutpostServer, Trust

PEOPLE = {
    "detector_name": "People at outposts", "detector_type": "ner", "entity_type": "person", "action_tier": "log_only",
}  # fmt: skip


def test_an_outpost_is_not_ready_while_it_loads_the_models_of_a_new_policy(trust: Trust) -> None:
    rules = f"{trust.server.url}/api/admin/dlp-rules/"
    headers = {"Authorization": f"Bearer {trust.server.key}"}
    with OutpostServer(trust) as outpost, ThreadPoolExecutor(1) as pool:
        ready = f"{outpost.url}/api/health/ready"
        assert httpx2.get(ready).status_code == 200
        creation = pool.submit(httpx2.post, rules, json=PEOPLE, headers=headers, timeout=60)
        try:
            refused = _until(ready, 503)
            assert "the models that the policy needs are being loaded" in refused.text
            _until(ready, 200)
        finally:
            rule = creation.result().json()
            httpx2.delete(rules + str(rule["id"]), headers=headers)
    assert creation.result().status_code == 201


def _until(url: str, status: int) -> httpx2.Response:
    deadline = time.monotonic() + 60
    while (answer := httpx2.get(url)).status_code != status:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)
    return answer


def test_a_name_is_shown_as_the_entity_type_of_its_rule(trust: Trust) -> None:
    rules = f"{trust.server.url}/api/admin/dlp-rules/"
    headers = {"Authorization": f"Bearer {trust.server.key}"}
    staff = {
        **PEOPLE, "entity_type": "employee_name", "action_tier": "redact", "config_json": {"entities": ["PERSON"]},
    }  # fmt: skip
    created = httpx2.post(rules, json=staff, headers=headers, timeout=60)
    assert created.status_code == 201, created.text
    try:
        with OutpostServer(trust) as outpost:
            answer = outpost.ask("Anna Smith called.")
            assert "[EMPLOYEE_NAME_1] called." in answer.text
    finally:
        httpx2.delete(rules + str(created.json()["id"]), headers=headers)
