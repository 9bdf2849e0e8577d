"""Errors of tenants."""

from gatehouse.foundation.errors import Conflict, NotFound


class SlugTaken(Conflict):
    code = "slug_taken"
    message = "slug: another organization uses this slug or has used it."


class OrganizationNotFound(NotFound):
    message = "The organization was deleted."
