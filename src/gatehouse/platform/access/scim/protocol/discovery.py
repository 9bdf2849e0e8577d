"""The discovery documents (RFC 7644, 4): capabilities, resource types and schemas."""

from functools import cache
from typing import Any, Final

from scim2_models import ResourceType

from gatehouse.platform.access.scim.protocol.resources import (
    EnterpriseUser,
    Group,
    Person,
    User,
)
from gatehouse.platform.access.scim.protocol.urns import MAX_RESULTS

_CORE_URN_PREFIX: Final = "urn:ietf:params:scim:schemas:core:2.0:"


def service_provider_config(base: str) -> dict[str, Any]:
    return {
        "schemas": [_CORE_URN_PREFIX + "ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_RESULTS},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": False},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "SCIM token",
                "description": "A token that an administrator made, as Authorization: Bearer.",
                "specUri": "https://www.rfc-editor.org/info/rfc6750",
                "primary": True,
            }
        ],
        "meta": {"resourceType": "ServiceProviderConfig", "location": f"{base}/ServiceProviderConfig"},
    }


def schemas(base: str) -> list[dict[str, Any]]:
    return [
        {**schema, "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{schema['id']}"}}
        for schema in _schemas()
    ]


def resource_types(base: str) -> list[dict[str, Any]]:
    return [
        {
            **resource_type,
            "meta": {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/{resource_type['id']}"},
        }
        for resource_type in _resource_types()
    ]


@cache
def _schemas() -> tuple[dict[str, Any], ...]:
    return tuple(model.to_schema().model_dump() for model in (User, EnterpriseUser, Group))


@cache
def _resource_types() -> tuple[dict[str, Any], ...]:
    return tuple(ResourceType.from_resource(model).model_dump() for model in (Person, Group))
