import pytest

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.credentials import (
    InvalidCredentials,
    MissingCredentials,
    fields_per_credential,
    read_credentials,
    read_secret,
)

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
KEYS = {"cloud_access_key_id": KEY_ID, "cloud_secret_access_key": "s"}


@pytest.mark.parametrize(
    ("kind", "body", "secret", "config"),
    [
        ("openai", {"api_key": "sk-1"}, {"api_key": "sk-1"}, {}),
        ("anthropic", {"api_key": "k"}, {"api_key": "k"}, {}),
        ("openai_compatible", {"base_url": "http://10.0.0.1/v1"}, {}, {"base_url": "http://10.0.0.1/v1"}),
        ("openai_compatible", {"api_key": "k", "base_url": None}, {"api_key": "k"}, {}),
        ("ollama", {"local_runtime_base_url": "http://h:1"}, {}, {"local_runtime_base_url": "http://h:1"}),
        ("byoe", {}, {}, {}),
        ("gemini", {"api_key": "k"}, {"api_key": "k"}, {}),
        (
            "bedrock",
            {**KEYS, "cloud_region": "us-east-1"},
            {"cloud_secret_access_key": "s"},
            {
                "cloud_access_key_id": KEY_ID,
                "cloud_region": "us-east-1",
                "use_instance_role": False,
            },
        ),
        (
            "bedrock",
            {"use_instance_role": True, "cloud_region": "us-gov-west-1"},
            {},
            {
                "cloud_access_key_id": None,
                "cloud_region": "us-gov-west-1",
                "use_instance_role": True,
            },
        ),
        ("sandbox", {}, {}, {}),
    ],
)
def test_good_credentials_are_split_into_secret_and_config(kind, body, secret, config):
    read = read_credentials(KINDS[kind], body)
    assert (read.secret, read.config) == (secret, config)


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({}, [*KEYS, "cloud_region"]),
        ({"cloud_region": "us-east-1", "use_instance_role": False}, [*KEYS]),
        ({"use_instance_role": True}, ["cloud_region"]),
    ],
)
def test_keys_are_required_unless_the_role_of_the_machine_is_used(body, missing):
    with pytest.raises(MissingCredentials) as refused:
        read_credentials(KINDS["bedrock"], body)
    assert refused.value.extra == {"missing": missing}


@pytest.mark.parametrize(("kind", "field"), [("openai", "api_key"), ("ollama", "local_runtime_base_url")])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_field_is_a_400_that_names_it(kind, field, value):
    with pytest.raises(MissingCredentials) as refused:
        read_credentials(KINDS[kind], {field: value})
    assert refused.value.extra == {"missing": [field]}


@pytest.mark.parametrize(
    ("kind", "body", "fields"),
    [
        ("openai", {"api_key": 7}, ["api_key"]),
        ("openai", {"api_key": "a\r\nx-admin: 1"}, ["api_key"]),
        ("openai", {"api_key": "k", "more": 1, "and": 2}, ["and", "more"]),
        ("openai", {"api_key": "ä"}, ["api_key"]),
        ("openai", {"api_key": "x" * 9000}, ["api_key"]),
        ("ollama", {"local_runtime_base_url": "file:///etc"}, ["local_runtime_base_url"]),
        ("sandbox", {"api_key": "k"}, ["api_key"]),
        ("bedrock", {**KEYS, "cloud_region": "us-east-1.evil.example/"}, ["cloud_region"]),
        ("bedrock", {**KEYS, "cloud_region": "US-EAST-1"}, ["cloud_region"]),
        ("bedrock", {**KEYS, "cloud_region": "us-east-1", "cloud_access_key_id": "a b"}, ["cloud_access_key_id"]),
        ("bedrock", {**KEYS, "cloud_region": "us-east-1", "use_instance_role": "yes"}, ["use_instance_role"]),
        ("bedrock", {**KEYS, "cloud_region": "us-east-1", "use_instance_role": True}, [*KEYS]),
    ],
)
def test_a_bad_field_is_a_422_that_names_it(kind, body, fields):
    with pytest.raises(InvalidCredentials) as refused:
        read_credentials(KINDS[kind], body)
    assert [fault.field for fault in refused.value.faults] == fields


def test_a_further_credential_uses_one_way_of_authentication_whose_settings_the_provider_has() -> None:
    bedrock, azure, vertex = KINDS["bedrock"], KINDS["azure_openai"], KINDS["vertex_ai"]
    keys = {"cloud_access_key_id": "A" * 20, "cloud_secret_access_key": "s", "cloud_session_token": "t"}
    assert read_secret(bedrock, {"cloud_region": "eu-west-1"}, keys) == keys
    assert read_secret(bedrock, {}, {"api_key": "k"}) == {"api_key": "k"}
    with pytest.raises(InvalidCredentials) as both:
        read_secret(bedrock, {}, {**keys, "api_key": "k"})
    assert [fault.field for fault in both.value.faults] == ["api_key"]
    with pytest.raises(MissingCredentials):
        read_secret(bedrock, {}, {"cloud_access_key_id": "A" * 20})

    # Without the ids of an application, a secret of it could not be used.
    with pytest.raises(InvalidCredentials):
        read_secret(azure, {}, {"api_key": "k", "entra_client_secret": "s"})
    application = {"entra_tenant_id": "contoso.com", "entra_client_id": "0" * 36}
    assert read_secret(azure, application, {"entra_client_secret": "s"}) == {"entra_client_secret": "s"}

    with pytest.raises(InvalidCredentials):
        read_secret(vertex, {}, {"service_account_key": "no key"})
    for kind in (bedrock, azure, vertex):
        assert fields_per_credential(kind, {"use_instance_role": True}) == ()
