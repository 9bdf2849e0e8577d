"""The deployment files and the page of outposts match the outpost's settings, ports and operations."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatehouse.foundation.settings import Settings
from gatehouse.outpost.admin.app import document
from gatehouse.outpost.settings import OutpostSettings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/outpost"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
EXAMPLE = (FOLDER / "outpost.env.example").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PAGE = (ROOT / "docs/outposts.md").read_text()
PORTS = {8300, 8301}


def container() -> dict[str, Any]:
    (result,) = [obj for obj in OBJECTS if obj["kind"] == "StatefulSet"]
    (one,) = result["spec"]["template"]["spec"]["containers"]
    return dict(one)


def is_read(name: str) -> bool:
    """Return whether the variable is a setting or a provider's credential."""
    return (
        name.lower() in OutpostSettings.model_fields or re.fullmatch(r"PROVIDER_[A-Z0-9]+_[A-Z0-9_]+", name) is not None
    )


def test_variables_in_the_files_are_settings() -> None:
    named = {
        *COMPOSE["services"]["outpost"]["environment"],
        *re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE),
        *(variable["name"] for variable in container()["env"]),
        *re.findall(r"--from-literal=([A-Z_]+)=", (FOLDER / "kubernetes.yaml").read_text()),
    }
    assert len(named) > 10
    assert [name for name in named if not is_read(name)] == []


def test_the_files_name_both_ports_and_do_not_expose_administration() -> None:
    published = COMPOSE["services"]["outpost"]["ports"]
    assert published == ["8300:8300", "127.0.0.1:8301:8301"]
    assert {port["containerPort"] for port in container()["ports"]} == PORTS
    (exposed,) = re.findall(r"^EXPOSE (8300 .+)$", DOCKERFILE, re.MULTILINE)
    assert set(map(int, exposed.split())) == PORTS


def test_the_images_last_target_is_the_platform_and_one_is_the_outpost() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    commands = {stage.splitlines()[0]: re.findall(r"^CMD (.+)$", stage, re.MULTILINE) for stage in stages[1:]}
    assert commands["runtime AS outpost"] == ['["serve", "outpost", "--host", "0.0.0.0"]']
    assert list(commands.values())[-1] == ['["serve", "platform", "--host", "0.0.0.0"]']
    assert COMPOSE["services"]["outpost"]["build"]["target"] == "outpost"


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_use_paths_of_the_proxy(probe: str) -> None:
    probe_request = container()[probe]["httpGet"]
    assert probe_request["port"] == "proxy"
    assert probe_request["path"].partition("?")[0] in document()["paths"]


def test_an_outposts_files_are_on_a_persistent_volume() -> None:
    (mount,) = [volumemount for volumemount in container()["volumeMounts"] if volumemount["name"] == "home"]
    home = re.search(r"GATEHOUSE_HOME=(\S+)", DOCKERFILE)
    assert home is not None
    assert mount["mountPath"] == home[1]
    volumes = COMPOSE["services"]["outpost"]["volumes"]
    assert [volume for volume in volumes if volume == f"outpost:{home[1]}"]
    assert set(COMPOSE["volumes"]) == {"outpost"}


def test_services_lead_to_the_pods() -> None:
    (pods,) = [obj for obj in OBJECTS if obj["kind"] == "StatefulSet"]
    labels = pods["spec"]["template"]["metadata"]["labels"]
    names = {port["name"] for port in container()["ports"]}
    services = [obj for obj in OBJECTS if obj["kind"] == "Service"]
    assert {port["targetPort"] for service in services for port in service["spec"]["ports"]} == names
    assert all(service["spec"]["selector"] == labels for service in services)
    assert pods["spec"]["serviceName"] in {service["metadata"]["name"] for service in services}


def test_every_setting_of_an_outpost_is_explained() -> None:
    """Settings of all hosts are on the page of settings."""
    result = set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE))
    own = {name.upper() for name in OutpostSettings.model_fields.keys() - Settings.model_fields.keys()}
    assert own <= result
    assert {name.lower() for name in result} <= set(OutpostSettings.model_fields)


def test_every_call_of_the_administration_is_named() -> None:
    calls = [f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item]
    administration = [call for call in calls if " /admin/" in call]
    assert len(administration) > 10
    assert [call for call in administration if f"`{call}`" not in PAGE] == []
