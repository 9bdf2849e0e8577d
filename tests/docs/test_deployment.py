"""The deployment files. There is no container engine in tests, so the files are only parsed and checked."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatehouse.foundation.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
KUBERNETES: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/gatehouse.yaml").read_text()))
DOCKERFILE = (ROOT / "Dockerfile").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def test_compose_has_the_documented_services() -> None:
    assert set(COMPOSE["services"]) == {"postgres", "redis", "migrate", "platform", "worker"}


@pytest.mark.parametrize("service", ["migrate", "platform", "worker"])
def test_a_service_is_configured_by_settings_that_exist(service: str) -> None:
    environment = COMPOSE["services"][service]["environment"]
    assert {name.lower() for name in environment} <= set(Settings.model_fields)


@pytest.mark.parametrize("service", ["platform", "worker"])
def test_nothing_serves_before_the_migration_is_done(service: str) -> None:
    waits = COMPOSE["services"][service]["depends_on"]["migrate"]
    assert waits == {"condition": "service_completed_successfully"}


def test_the_volumes_are_declared() -> None:
    used = {
        volume.partition(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", ())
    }
    assert used == set(COMPOSE["volumes"])


def test_the_image_copies_only_files_of_the_build_context() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_the_image_installs_packages_by_hash_and_runs_as_an_unprivileged_user() -> None:
    installs = re.findall(r"pip install (.+)$", DOCKERFILE, re.MULTILINE)
    assert all("--require-hashes" in options or "--no-deps dist" in options for options in installs)
    # The lock files are complete, so pip must not resolve dependencies. It would refuse a lock file as soon as a
    # package that is required with an extra has a newer release than the locked one.
    assert all("--no-deps" in options for options in installs)
    # `call install` takes the options of uv and pip.
    installs = re.findall(r"(?:pip install (?!.*\$\(1\))|call install,)(.+)$", MAKEFILE, re.MULTILINE)
    assert len(installs) == 4
    assert all("--no-deps" in options for options in installs)
    assert re.search(r"^USER gatehouse$", DOCKERFILE, re.MULTILINE)
    assert "/api/health/live" in DOCKERFILE


def test_probes_use_existing_paths() -> None:
    (pods,) = [path for path in KUBERNETES if path["kind"] == "StatefulSet"]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    probes = [container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    # A failure of Redis or the database takes no pod out of service, because each pod can still answer model calls.
    assert probes == ["/api/health/startup", "/api/health/live", "/api/health/ready?for=traffic"]


def test_every_container_is_confined() -> None:
    templates = [path["spec"]["template"]["spec"] for path in KUBERNETES if "template" in path.get("spec", {})]
    assert len(templates) == 3
    for pod in templates:
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            confined = container["securityContext"]
            assert confined["allowPrivilegeEscalation"] is False
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["capabilities"] == {"drop": ["ALL"]}


def test_the_stateful_sets_service_is_headless_and_one_pod_stays() -> None:
    by_name = {(path["kind"], path["metadata"]["name"]): path for path in KUBERNETES}
    (pods,) = [path for path in KUBERNETES if path["kind"] == "StatefulSet"]
    assert by_name["Service", pods["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"
    labels = pods["spec"]["template"]["metadata"]["labels"]
    (budget,) = [path for path in KUBERNETES if path["kind"] == "PodDisruptionBudget"]
    assert budget["spec"] == {"minAvailable": 1, "selector": {"matchLabels": labels}}


def test_a_job_of_another_version_has_another_name() -> None:
    (job,) = [path for path in KUBERNETES if path["kind"] == "Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    version = container["image"].partition(":")[2]
    assert job["metadata"]["name"].endswith(version.replace(".", "-"))
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
