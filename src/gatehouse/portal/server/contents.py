"""Lists the portal's families and their error formats."""

from dataclasses import replace
from typing import Final

from fastapi import APIRouter

from gatehouse.foundation.http.envelopes import DEFAULT_FORMATS, PORTAL, ErrorFormats
from gatehouse.portal import health
from gatehouse.portal.config_import import routes as config_import
from gatehouse.portal.members import routes as members
from gatehouse.portal.notifications import routes as notifications
from gatehouse.portal.organizations import routes as organizations
from gatehouse.portal.outposts import routes as outposts
from gatehouse.portal.pages import routes as pages
from gatehouse.portal.pages.rendering import ERROR_FORMAT, PATHS
from gatehouse.portal.platform_notices import routes as platform_notices
from gatehouse.portal.sso import routes as sso
from gatehouse.portal.tokens import routes as tokens

FAMILIES: Final[tuple[APIRouter, ...]] = (
    organizations.router,
    tokens.router,
    members.router,
    sso.router,
    config_import.router,
    outposts.router,
    notifications.router,
    platform_notices.router,
    health.router,
    pages.router,
)

#: All paths have one error format, except those of pages. It replaces the default formats of the gateway's paths, which
#: the portal does not have.
ERROR_FORMATS: Final = ErrorFormats(
    {
        **dict.fromkeys(DEFAULT_FORMATS, PORTAL),
        **dict.fromkeys(PATHS, ERROR_FORMAT),
        **dict.fromkeys(("/v1/auth/sso/login", "/v1/auth/sso/callback"), replace(PORTAL, in_browsers=ERROR_FORMAT)),
    },
    otherwise=PORTAL,
)

#: Paths that ignore unknown query parameters, because an OpenID provider may add parameters to a sign-in, and
#: probes may send any.
ANY_PARAMETERS: Final = ("/login/static/", "/.well-known/", "/v1/auth/sso/", "/api/health/", "/metrics")
