"""Bodies of the endpoints of settings."""

from datetime import datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, create_model

from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.platform.organization.allowed_domains.schemas import Domain
from gatehouse.platform.organization.feature_flags.table import DEFAULTS
from gatehouse.platform.organization.ip_allowlist.schemas import Cidrs
from gatehouse.platform.organization.policies.schemas import IdleTimeout, SessionTimeout
from gatehouse.platform.organization.tenants.schemas import Name, Slug
from gatehouse.platform.organization.tenants.sources import Source


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _zone(name: str) -> str:
    if name not in _zones():
        raise ValueError("is not an IANA time zone, such as Europe/Berlin")
    return name


Timezone = Annotated[str, Field(max_length=64, examples=["Europe/Berlin"]), AfterValidator(_zone)]

_flags: dict[str, Any] = {name: (bool, Field(default_factory=omitted)) for name in DEFAULTS}
FeatureFlagsUpdate: Any = create_model("FeatureFlagsUpdate", __base__=Body, __doc__="Some of the flags.", **_flags)


class SettingsUpdate(Body):
    """A partial update: omitted fields keep their values. `allowed_domains` and `ip_allowlist` are replaced as
    a whole."""

    display_name: Name = Field(default_factory=omitted)
    slug: Slug = Field(default_factory=omitted)
    allowed_domains: Annotated[list[Domain], Field(max_length=100)] = Field(default_factory=omitted)
    contact_email: Email | None = Field(default=None)
    timezone: Timezone = Field(default_factory=omitted)
    session_timeout_minutes: SessionTimeout = Field(default_factory=omitted)
    idle_timeout_minutes: IdleTimeout = Field(default_factory=omitted)
    ip_allowlist: Cidrs = Field(default_factory=omitted, description="The list is enforced unless it is empty.")
    feature_flags: FeatureFlagsUpdate = Field(default_factory=omitted)


class Settings(ResponseBody):
    org_id: str
    display_name: str
    slug: str
    allowed_domains: list[str]
    contact_email: str | None
    timezone: str
    session_timeout_minutes: int
    idle_timeout_minutes: int
    ip_allowlist: Annotated[list[str], Field(description="CIDR ranges, including those that are not enforced.")]
    feature_flags: dict[str, bool]
    sources: Annotated[
        dict[str, Source],
        Field(
            description="Where the value of each field and feature flag comes from: `organization` where it was set."
            " Names, addresses and the time zone are always the organization's own.",
            examples=[{"idle_timeout_minutes": "organization", "feature_flags.dlp_enabled": "default"}],
        ),
    ]
    created_at: datetime
    updated_at: datetime
