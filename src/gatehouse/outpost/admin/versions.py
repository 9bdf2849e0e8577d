"""Versions of the settings that operators change (`ETag`, `If-Match`), and the lock of their changes."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import Depends

from gatehouse.administration.etags import TheVersions, checks_if_match, value_tag
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.state import StoredState


def version_of(setting: Callable[[StoredState], object]) -> Any:
    """Return a dependency of a route that shows or changes a setting. The version is a digest of the stored value."""

    async def declare(host: AuthorizedHost, versions: TheVersions) -> None:
        versions.about_version(lambda: value_tag(setting(host.state.current)))

    return Depends(declare)


@checks_if_match
async def _change(host: AuthorizedHost, versions: TheVersions) -> AsyncIterator[None]:
    """Hold the lock of changes until the route has returned, so that of two changes with the same version exactly one
    is made."""
    async with host.state.change_lock:
        versions.require()
        yield
        versions.changed()


#: Parameter of a route that changes stored settings.
Changing = Annotated[None, Depends(_change, scope="function")]
