"""The table of contents of the portal: one line a family."""

from typing import Final

from fastapi import APIRouter

from gatehouse.portal import health
from gatehouse.portal.members import routes as members
from gatehouse.portal.notifications import routes as notifications
from gatehouse.portal.organizations import routes as organizations
from gatehouse.portal.outposts import routes as outposts
from gatehouse.portal.platform_notices import routes as platform_notices
from gatehouse.portal.sso import routes as sso
from gatehouse.portal.tokens import routes as tokens

FAMILIES: Final[tuple[APIRouter, ...]] = (
    organizations.router,
    tokens.router,
    members.router,
    sso.router,
    outposts.router,
    notifications.router,
    platform_notices.router,
    health.router,
)
