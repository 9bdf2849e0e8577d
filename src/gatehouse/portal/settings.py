"""The portal's settings. They are read once from the environment (docs/portal.md, "Settings")."""

from pathlib import Path
from typing import Annotated, ClassVar, Final
from uuid import UUID

from pydantic import BeforeValidator, Field, SecretStr

from gatehouse.foundation.secrets.tokens import digest
from gatehouse.foundation.settings import CommonSettings, Origin, WebAddress
from gatehouse.portal.identity import Plan

#: Minimum length of an admin key. The key gives access to every organization, so it must be hard to guess.
_MIN_KEY_CHARACTERS: Final = 16


def _digests(value: object) -> object:
    """Returns the digests of the keys, so that the settings do not contain the keys."""
    if not isinstance(value, str):
        return value
    keys = [key.strip() for key in value.split(",") if key.strip()]
    if any(len(key) < _MIN_KEY_CHARACTERS for key in keys):
        raise ValueError(
            f"a key needs at least {_MIN_KEY_CHARACTERS} characters; create one with: openssl rand -hex 32"
        )
    return tuple(map(digest, keys))


def _by_plan(value: object) -> object:
    """Returns the numbers by plan for a text such as `starter=60,business=300`."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if not all(number.strip().isdecimal() for _, _, number in pairs):
        raise ValueError("must be numbers by plan, like starter=60,business=300,enterprise=1200")
    return {plan.strip(): int(number) for plan, _, number in pairs}


Rate = Annotated[int, Field(ge=1, le=1_000_000)]


class PortalSettings(CommonSettings):
    database_variable: ClassVar[str] = "PORTAL_DATABASE_URL"

    portal_database_url: str | None = Field(None, description="URL of PostgreSQL. Default: an embedded one.")
    portal_database_owner_url: str | None = Field(
        None, description="URL for migrations, if the login of PORTAL_DATABASE_URL owns nothing."
    )
    portal_admin_api_key: Annotated[tuple[bytes, ...], BeforeValidator(_digests)] = Field(
        (), description="Admin key (`X-API-Key`). During a rotation, several keys with commas between."
    )
    portal_public_url: Origin | None = Field(
        None, description="URL of the portal for clients, and issuer of its tokens."
    )
    platform_url: WebAddress | None = Field(None, description="URL of the platform, where tenants are created.")
    platform_public_url: WebAddress | None = Field(
        None, description="URL of the platform for outposts, if it differs from `PLATFORM_URL`."
    )
    platform_client_id: UUID | None = Field(None, description="The platform-wide OAuth client with `admin:write`.")
    platform_client_secret: SecretStr | None = Field(None, description="Its secret.")
    portal_scan_rate_limits: Annotated[dict[Plan, Rate], BeforeValidator(_by_plan)] = Field(
        {}, description="Scans a minute of one caller, by plan: `starter=60,business=300,enterprise=1200`."
    )
    max_request_bytes: int = Field(2 * 1024**2, ge=1024)

    @property
    def home(self) -> Path:
        """Returns the folder of the portal. The platform may use the same `GATEHOUSE_HOME` with another folder."""
        return self.gatehouse_home / "portal"

    @property
    def embedded(self) -> bool:
        return self.portal_database_url is None

    @property
    def issuer(self) -> str:
        """Returns the issuer and the audience of organization tokens."""
        return self.portal_public_url or "gatehouse-portal"

    def missing(self) -> list[str]:
        faults = []
        if self.platform_url and not (self.platform_client_id and self.platform_client_secret):
            faults.append("PLATFORM_CLIENT_ID, PLATFORM_CLIENT_SECRET: needed with PLATFORM_URL")
        if not self.embedded and not self.portal_admin_api_key:
            faults.append("PORTAL_ADMIN_API_KEY: needed with PORTAL_DATABASE_URL; create it with: openssl rand -hex 32")
        return faults
