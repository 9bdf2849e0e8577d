"""Checks the settings before anything is started and reports all faults at once."""

import difflib
import os
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import structlog

from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.redis.line import Address
from gatehouse.foundation.secrets.sealing import load_master_keys
from gatehouse.foundation.settings import BadSettings, CommonSettings

log = structlog.get_logger(__name__)

S = TypeVar("S", bound=CommonSettings)

#: similarity from which a variable is treated as a misspelt setting
_SIMILARITY: Final = 0.9
#: former names of settings, which have no effect, and their new names
_RENAMED: Final = {"DLP_UNINSPECTABLE": "DLP_UNREADABLE"}


def checked_settings(kind: type[S], checks: tuple[Callable[[S], object], ...] = ()) -> S:
    """Returns the settings from the environment. Each check raises `BadSettings` for a fault. This function raises one
    `BadSettings` that lists the faults of all checks."""
    settings, faults = kind.read(os.environ)
    if settings is not None:
        for check in (*_COMMON, *checks):
            try:
                check(settings)
            except BadSettings as error:
                # A variable that could not be read has its default value here. Its fault is already listed.
                faults += [line for line in str(error).split("\n") if line not in faults]
    if faults or settings is None:
        raise BadSettings("\n".join(faults))
    return settings


def warn_about_misspelt(kind: type[CommonSettings]) -> None:
    for name, setting in misspelt(kind):
        log.warning("settings.unknown", variable=name, meant=setting)


def misspelt(kind: type[CommonSettings]) -> Iterator[tuple[str, str]]:
    """Yields the environment's variables whose names are misspelt or former names of settings. Each is yielded with the
    name of the setting that is probably meant."""
    settings = {name.upper() for name in kind.model_fields}
    for name in sorted(os.environ.keys() - settings):
        if _RENAMED.get(name) in settings:
            yield name, _RENAMED[name]
        elif similar := difflib.get_close_matches(name, settings, n=1, cutoff=_SIMILARITY):
            yield name, similar[0]


def listener_tls(settings: CommonSettings) -> None:
    tls_context(settings.tls_cert_path, settings.tls_key_path, settings.tls_client_ca_path)


def _redis(settings: CommonSettings) -> None:
    if settings.redis_url is not None:
        Address.parse(settings.redis_url)


def _trusted_proxies(settings: CommonSettings) -> None:
    ClientAddresses(settings.trusted_proxies)


def _egress_allowlist(settings: CommonSettings) -> None:
    EgressGuard(settings.egress_allowlist)


def _metrics_networks(settings: CommonSettings) -> None:
    try:
        for cidr in settings.metrics_allowed_cidrs:
            network(cidr, strict=True)
    except ValueError as error:
        raise BadSettings(f"METRICS_ALLOWED_CIDRS: {error}") from None


def _master_key(settings: CommonSettings) -> None:
    # An embedded deployable without a key creates one in its home folder. This check must not create it.
    if settings.gatehouse_master_key is not None or not settings.embedded:
        load_master_keys(settings)


def _unreadable(settings: CommonSettings) -> None:
    """Refuses the former name of DLP_UNREADABLE if its value is `block`, because an upgrade would otherwise end the
    blocking without notice."""
    blocks_by_former_name = os.environ.get("DLP_UNINSPECTABLE") == "block" and not os.environ.get("DLP_UNREADABLE")
    if blocks_by_former_name and "dlp_unreadable" in type(settings).model_fields:
        raise BadSettings("DLP_UNINSPECTABLE: renamed DLP_UNREADABLE; set that to block or log_only")


_COMMON: Final = (_redis, _trusted_proxies, _egress_allowlist, _metrics_networks, _master_key, _unreadable)
