"""The settings of an outpost, in addition to those that it shares with the platform (docs/outposts.md, "Settings")."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, SecretStr

from gatehouse.foundation.settings import BadSettings, Settings, WebAddress, Words

_UNITS = {"kb": 1024, "mb": 1024**2, "gb": 1024**3}


def _size(value: object) -> object:
    """Returns the number of bytes for a text such as `100MB`. Other values are returned unchanged."""
    if isinstance(value, str):
        text = value.strip().lower()
        for unit, factor in _UNITS.items():
            if text.endswith(unit) and text.removesuffix(unit).strip().isdigit():
                return int(text.removesuffix(unit)) * factor
    return value


Size = Annotated[int, BeforeValidator(_size)]


class OutpostSettings(Settings):
    outpost_id: UUID | None = Field(None, description="The outpost's id, from its registration at the portal.")
    platform_management_url: WebAddress | None = Field(None, description="URL of the platform for this outpost.")
    platform_issuer: str | None = Field(
        None, description="The platform's `PUBLIC_URL`, if `/.well-known/…` of the platform cannot be read."
    )
    cloud_portal_url: WebAddress | None = Field(None, description="URL of the portal, which receives heartbeats.")
    portal_issuer: str | None = Field(
        None, description="The portal's `PORTAL_PUBLIC_URL`, if it differs from `CLOUD_PORTAL_URL`."
    )
    tls_ca_bundle: Path | None = Field(None, description="Trusted authorities for platform, portal and peers.")
    proxy_tls_cert_path: Path | None = Field(None, description="Certificate of the proxy's and admin API's listeners.")
    proxy_tls_key_path: Path | None = None

    outpost_jwt_secret: SecretStr | None = Field(
        None, min_length=32, description="Signs the tokens (HS256) of this outpost's own clients."
    )
    outpost_admin_token: SecretStr | None = Field(
        None, min_length=16, description="Bearer token of the admin API. Without it the API refuses all calls."
    )
    outpost_airgap: bool = Field(False, description="Never calls the platform: policy from a file, records to a file.")
    outpost_bundle_path: Path | None = Field(None, description="The bundle's file, with OUTPOST_AIRGAP.")
    outpost_keys_path: Path | None = Field(None, description="The platform's key set, with OUTPOST_AIRGAP.")
    outpost_peers: Words = Field((), description="Admin addresses of the outposts that share this one's budget.")
    outpost_self_address: WebAddress | None = Field(
        None, description="This outpost's own address in OUTPOST_PEERS, if the list contains it."
    )

    rate_limit_proxy_per_minute: int = Field(600, ge=1, description="Model calls of one caller.")
    rate_limit_scan_per_minute: int = Field(300, ge=1, description="Scans of one caller.")
    rate_limit_admin_per_minute: int = Field(
        60, ge=1, description="Calls of the admin API from one address; its kill switch is not limited."
    )
    budget_monthly_usd: Decimal | None = Field(None, ge=0, max_digits=15, description="Dollars a month (UTC).")
    budget_monthly_requests: int | None = Field(None, ge=0, description="Requests a month (UTC).")

    log_rotation_max_size: Size = Field(100 * 1024**2, ge=1024**2, description="Bytes of one file of the audit log.")
    log_rotation_max_files: int = Field(5, ge=1, le=1000, description="Files of the audit log that are kept.")
    disk_monitor_threshold: int = Field(85, ge=1, le=99, description="Used percentage at which audit data is dropped.")
    disk_monitor_check_interval: float = Field(30, ge=0.1, description="Seconds between two checks of the disk.")

    siem_direct_type: Literal["hec", "syslog", "webhook", "file"] | None = Field(
        None, description="Type of the SIEM receiver to which the outpost sends its events."
    )
    siem_direct_url: str | None = Field(None, description="Its URL: `https://…`, `tcp://host:port`, `tls://…`.")
    siem_direct_token: SecretStr | None = Field(
        None, min_length=8, description="The collector's token, or the key of a webhook's signatures."
    )
    siem_direct_index: str | None = Field(None, description="Splunk's index.")
    siem_direct_ca_bundle: Path | None = Field(None, description="Trusted authorities for the receiver.")

    @property
    def folder(self) -> Path:
        """Returns the folder of this outpost's files."""
        return self.gatehouse_home / "outpost"

    @property
    def peers(self) -> tuple[str, ...]:
        """Returns the addresses of the other outposts, sorted."""
        own = (self.outpost_self_address or "").rstrip("/")
        return tuple(sorted({address.rstrip("/") for address in self.outpost_peers} - {own}))

    @property
    def place(self) -> int | None:
        """Returns this outpost's index among all peers, sorted by address, or None if its own address is not set."""
        if self.outpost_self_address is None:
            return None
        own = self.outpost_self_address.rstrip("/")
        return sorted({*self.peers, own}).index(own)

    def checked(self) -> "OutpostSettings":
        """Returns the settings. Raises `BadSettings` if a required setting is missing or invalid."""
        faults = []
        if self.outpost_id is None:
            faults.append("OUTPOST_ID: set it to the id that the portal returned at the registration")
        if self.outpost_airgap:
            if self.outpost_bundle_path is None or self.outpost_keys_path is None:
                faults.append("OUTPOST_AIRGAP: needs OUTPOST_BUNDLE_PATH and OUTPOST_KEYS_PATH")
        else:
            if self.platform_management_url is None:
                faults.append("PLATFORM_MANAGEMENT_URL: set it to the platform's address, or OUTPOST_AIRGAP=true")
            if self.tls_cert_path is None or self.tls_key_path is None:
                faults.append("TLS_CERT_PATH, TLS_KEY_PATH: set them to the certificate and key of the registration")
        if self.peers:
            if not all(address.startswith(("http://", "https://")) for address in self.peers):
                faults.append("OUTPOST_PEERS: must be URLs like https://outpost-2.example.com:8301 with commas between")
            if self.tls_cert_path is None or self.tls_key_path is None or self.tls_ca_bundle is None:
                faults.append("OUTPOST_PEERS: needs TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_BUNDLE")
        if faults:
            raise BadSettings("\n".join(faults))
        return self
